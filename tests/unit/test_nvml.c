// The list of GPUs from libraries built from tests/support/fake_nvml.c. FAKE_NVML is the path of
// the whole one; beside it lie libfake-no-v2.so and libfake-no-name.so, each without one symbol.
#include "host/sources/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/t.h"

struct listed {
    struct nvml_report report;
    struct error error;
    bool ok;
};

static const char *beside(struct arena *a, const char *name)
{
    struct str folder = str_cut_last(STR(FAKE_NVML), '/').head;
    return str_z(a, str_format(a, "%.*s/%s", STR_ARGS(folder), name));
}

static struct listed list(const char *library, const char *mode)
{
    struct listed l = {.report = {.count = 77}};
    setenv("FAKE_NVML", mode, 1);
    struct arena *a = test_arena();
    const char *path = strchr(library, '/') ? library : beside(a, library);
    l.ok = nvml_list_from(&l.report, path, a, &l.error);
    if (!l.ok)
        CHECK_U64((uint64_t)l.report.count, 77);
    return l;
}

static void fails(const char *library, const char *mode, const char *message)
{
    struct listed l = list(library, mode);
    CHECK(!l.ok);
    CHECK_U64(l.error.code, ERROR_IO);
    CHECK_STR(str_from(l.error.message), message);
}

static void check_two(const struct listed *l, uint64_t reserved, uint64_t used)
{
    CHECK(l->ok);
    CHECK_U64((uint64_t)l->report.count, 2);
    if (l->report.count != 2)
        return;
    CHECK_STR(l->report.driver_version, "570.86.15");
    const struct nvml_gpu *gpus = l->report.gpus;
    CHECK_STR(str_from(gpus[0].name), "NVIDIA H100 80GB HBM3");
    CHECK_U64(gpus[0].total_bytes, (uint64_t)80 << 30);
    CHECK_U64(gpus[0].reserved_bytes, reserved << 30);
    CHECK_U64(gpus[0].used_bytes, used << 30);
    CHECK_U64((uint64_t)gpus[0].cc_major, 9);
    CHECK_U64((uint64_t)gpus[0].cc_minor, 0);
    CHECK_STR(str_from(gpus[1].name), "NVIDIA L4");
    CHECK_U64(gpus[1].total_bytes, (uint64_t)24 << 30);
    CHECK_U64((uint64_t)gpus[1].cc_minor, 9);
}

TEST(nvml_two_gpus)
{
    struct listed l = list(FAKE_NVML, "");
    check_two(&l, 1, 2);
}

TEST(nvml_older_memory_query)
{
    struct listed refused = list(FAKE_NVML, "v1");
    check_two(&refused, 0, 70);
    struct listed missing = list("libfake-no-v2.so", "");
    check_two(&missing, 0, 70);
}

TEST(nvml_no_gpu)
{
    struct listed l = list(FAKE_NVML, "none");
    CHECK(l.ok);
    CHECK_U64((uint64_t)l.report.count, 0);
}

TEST(nvml_failures)
{
    fails(FAKE_NVML, "init", "the NVIDIA driver failed to start (Driver Not Loaded)");
    fails(FAKE_NVML, "memory", "the NVIDIA driver failed to report a GPU's memory (Not Supported)");
    fails("/nonexistent/libnvidia-ml.so.1", "",
          "this machine has no NVIDIA driver (/nonexistent/libnvidia-ml.so.1 was not found)");
    struct listed l = list("libfake-no-name.so", "");
    CHECK(!l.ok);
    CHECK(str_ends(str_from(l.error.message), STR("has no nvmlDeviceGetName")));
}

TEST(nvml_is_shut_down_as_often_as_it_starts)
{
    void *library = dlopen(FAKE_NVML, RTLD_NOW); // keeps the count alive between the calls
    CHECK(library);
    if (!library)
        return;
    void *address = dlsym(library, "fake_started");
    int (*started)(void);
    CHECK(address);
    memcpy((void *)&started, (const void *)&address, sizeof started);
    static const char *const modes[] = {"", "init", "memory", "v1", "none"};
    for (int i = 0; i < 5; i++) {
        list(FAKE_NVML, modes[i]);
        CHECK(started() == 0);
    }
    dlclose(library);
}

// The machine may or may not have a driver; either way the answer is a list or the sentence.
TEST(nvml_default_library)
{
    struct nvml_gpu *gpus = NULL;
    ptrdiff_t count = -1;
    struct str version = STR_NONE;
    struct error e = {0};
    bool ok = nvml_list(&gpus, &count, &version, test_arena(), &e);
    CHECK(ok ? count >= 0 && version.n > 0 : e.code == ERROR_IO && e.message[0]);
}
