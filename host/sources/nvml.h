// The GPUs of this machine as NVIDIA's management library reports them. The library comes with the
// driver and is loaded at run time; its prototypes are written here by hand, so nothing of NVIDIA's
// is needed to build.
#ifndef FATHOM_HOST_SOURCES_NVML_H
#define FATHOM_HOST_SOURCES_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/str.h"

enum { NVML_NAME_BYTES = 96 };

struct nvml_gpu {
    char name[NVML_NAME_BYTES];
    uint64_t total_bytes;
    uint64_t reserved_bytes; // by driver and firmware; drivers before 510 count it as used
    uint64_t used_bytes;
    int cc_major, cc_minor;
};

// In the order of nvidia-smi. A machine with a driver and no GPU gives a count of zero.
bool nvml_list(struct nvml_gpu **gpus, ptrdiff_t *count, struct str *driver_version,
               struct arena *a, struct error *e) MUST_USE;

struct nvml_report {
    struct nvml_gpu *gpus;
    ptrdiff_t count;
    struct str driver_version;
};

// The same from a library of that name or path, for tests.
bool nvml_list_from(struct nvml_report *report, const char *library, struct arena *a,
                    struct error *e) MUST_USE;

#endif
