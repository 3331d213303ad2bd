// Prototypes and numbers as in nvml.h of CUDA 12; these symbols have not changed since driver 418
// (nvmlDeviceGetMemoryInfo_v2: 510).
#include "host/sources/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include "host/system/library.h"

enum { VERSION_BYTES = 80, GPUS_MAX = 1024 };

struct memory_v1 {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

#define MEMORY_V2_VERSION ((unsigned int)sizeof(struct memory_v2) | 2u << 24)

struct api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*driver_version)(char *version, unsigned int length);
    int (*device_count)(unsigned int *count);
    int (*device_handle)(unsigned int index, void **device);
    int (*device_name)(void *device, char *name, unsigned int length);
    int (*device_memory)(void *device, struct memory_v1 *memory);
    int (*device_memory_v2)(void *device, struct memory_v2 *memory);
    int (*device_capability)(void *device, int *major, int *minor);
};

static const struct library_symbol symbols[] = {
    {"nvmlInit_v2", offsetof(struct api, init), false},
    {"nvmlShutdown", offsetof(struct api, shutdown), false},
    {"nvmlErrorString", offsetof(struct api, error_string), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct api, driver_version), false},
    {"nvmlDeviceGetCount_v2", offsetof(struct api, device_count), false},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct api, device_handle), false},
    {"nvmlDeviceGetName", offsetof(struct api, device_name), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct api, device_memory), false},
    {"nvmlDeviceGetMemoryInfo_v2", offsetof(struct api, device_memory_v2), true},
    {"nvmlDeviceGetCudaComputeCapability", offsetof(struct api, device_capability), false},
};

static bool succeeded(const struct api *api, int result, const char *doing, struct error *e)
{
    if (result == 0)
        return true;
    const char *reason = api->error_string(result);
    return FAIL(e, IO, STR_NONE, "the NVIDIA driver failed to %s (%.120s)", doing,
                reason ? reason : "no reason given");
}

static bool memory_read(struct nvml_gpu *gpu, const struct api *api, void *device, struct error *e)
{
    struct memory_v2 v2 = {.version = MEMORY_V2_VERSION};
    if (api->device_memory_v2 && api->device_memory_v2(device, &v2) == 0) {
        gpu->total_bytes = v2.total;
        gpu->reserved_bytes = v2.reserved;
        gpu->used_bytes = v2.used;
        return true;
    }
    struct memory_v1 v1 = {0};
    if (!succeeded(api, api->device_memory(device, &v1), "report a GPU's memory", e))
        return false;
    gpu->total_bytes = v1.total;
    gpu->used_bytes = v1.used;
    return true;
}

static bool gpu_read(struct nvml_gpu *gpu, const struct api *api, unsigned int index,
                     struct error *e)
{
    void *device = NULL;
    struct nvml_gpu found = {0};
    bool ok = succeeded(api, api->device_handle(index, &device), "open a GPU", e) &&
              succeeded(api, api->device_name(device, found.name, sizeof found.name - 1),
                        "name a GPU", e) &&
              memory_read(&found, api, device, e) &&
              succeeded(api, api->device_capability(device, &found.cc_major, &found.cc_minor),
                        "report a GPU's compute capability", e);
    if (ok)
        *gpu = found;
    return ok;
}

static bool list_read(struct nvml_report *report, const struct api *api, struct arena *a,
                      struct error *e)
{
    char version[VERSION_BYTES + 1] = {0};
    unsigned int count = 0;
    if (!succeeded(api, api->driver_version(version, VERSION_BYTES), "tell its version", e) ||
        !succeeded(api, api->device_count(&count), "count the GPUs", e))
        return false;
    if (count > GPUS_MAX)
        return FAIL(e, IO, STR_NONE, "the NVIDIA driver reports %u GPUs", count);
    struct nvml_gpu *gpus = NEW(a, struct nvml_gpu, count);
    for (unsigned int i = 0; i < count; i++)
        if (!gpu_read(&gpus[i], api, i, e))
            return false;
    *report = (struct nvml_report){gpus, count, str_copy(a, str_from(version))};
    return true;
}

bool nvml_list_from(struct nvml_report *report, const char *library, struct arena *a,
                    struct error *e)
{
    void *handle = library_open(&library, 1);
    if (!handle) {
        FAIL(e, IO, STR_NONE, "this machine has no NVIDIA driver (%.120s was not found)", library);
        return HINT(e, "name the GPUs instead, e.g. --gpu 8xH100-80G");
    }
    struct api api = {0};
    bool started = false, ok = false;
    const char *missing = library_bind(&api, handle, symbols, COUNT_OF(symbols));
    if (missing) {
        FAIL(e, IO, STR_NONE, "the NVIDIA driver is too old: %.120s has no %s", library, missing);
        goto done;
    }
    started = succeeded(&api, api.init(), "start", e);
    ok = started && list_read(report, &api, a, e);
done:
    if (started)
        api.shutdown();
    dlclose(handle);
    return ok;
}

bool nvml_list(struct nvml_gpu **gpus, ptrdiff_t *count, struct str *driver_version,
               struct arena *a, struct error *e)
{
    struct nvml_report report = {0};
    if (!nvml_list_from(&report, "libnvidia-ml.so.1", a, e))
        return false;
    *gpus = report.gpus;
    *count = report.count;
    *driver_version = report.driver_version;
    return true;
}
