// A stand-in for libnvidia-ml.so.1 with two GPUs. FAKE_NVML in the environment chooses what goes
// wrong: "init" (no driver behind the library), "v1" (a driver that refuses the second version of
// the memory query), "memory" (neither works), "none" (no GPU), "twins" (both GPUs are alike),
// "sixteen" (of the first).
// Compiled with -DNO_V2 it lacks that symbol altogether, with -DNO_NAME one that every driver has.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int mode_is(const char *mode)
{
    const char *chosen = getenv("FAKE_NVML");
    return chosen && strcmp(chosen, mode) == 0;
}

static int started;
static const unsigned long long gib = 1ull << 30;
static int gpus[2] = {0, 1};

static int copy(char *to, unsigned int length, const char *text)
{
    if (strlen(text) + 1 > length)
        return 7;
    memcpy(to, text, strlen(text) + 1);
    return 0;
}

EXPORT int nvmlInit_v2(void)
{
    if (mode_is("init"))
        return 9;
    started++;
    return 0;
}

EXPORT int nvmlShutdown(void)
{
    started--;
    return 0;
}

EXPORT int fake_started(void)
{
    return started;
}

EXPORT const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded" : result == 3 ? "Not Supported" : "Unknown Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return started ? copy(version, length, "570.86.15") : 1;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = mode_is("none") ? 0 : mode_is("sixteen") ? 16 : 2;
    return started ? 0 : 1;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    bool many = mode_is("sixteen");
    if (!started || index > (many ? 15 : 1))
        return 2;
    *device = &gpus[many ? 0 : index];
    return 0;
}

#ifndef NO_NAME
EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned int length)
{
    const char *second = mode_is("twins") ? "NVIDIA H100 80GB HBM3" : "NVIDIA L4";
    return copy(name, length, *(int *)device ? second : "NVIDIA H100 80GB HBM3");
}
#endif

EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *total_free_used)
{
    if (mode_is("memory"))
        return 3;
    total_free_used[0] = (*(int *)device ? 24 : 80) * gib;
    total_free_used[1] = 10 * gib;
    total_free_used[2] = total_free_used[0] - 10 * gib;
    return 0;
}

#ifndef NO_V2
struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory)
{
    if (mode_is("v1") || mode_is("memory"))
        return 3;
    if (memory->version != 0x02000028)
        return 25;
    memory->total = (*(int *)device ? 24 : 80) * gib;
    memory->reserved = 1 * gib;
    memory->used = 2 * gib;
    memory->free = memory->total - 3 * gib;
    return 0;
}
#endif

EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    *major = *(int *)device ? 8 : 9;
    *minor = *(int *)device ? 9 : 0;
    return 0;
}
