// NVML's list becomes "8xH200:memory=...": the catalogue's card with the memory this machine really
// has, or a custom card where the catalogue does not know it.
#include "host/sources/gpu_source.h"

#include <string.h>
#include <unistd.h>

#include "core/hardware/hardware.h"
#include "host/sources/nvml.h"

static bool all_alike(const struct nvml_gpu *gpus, ptrdiff_t count)
{
    for (ptrdiff_t i = 1; i < count; i++)
        if (strcmp(gpus[i].name, gpus[0].name) != 0)
            return false;
    return true;
}

static struct str spec_of(struct arena *a, const struct nvml_gpu *g, ptrdiff_t count)
{
    const struct gpu *known = gpu_find_nvml(str_from(g->name));
    uint64_t reserved = g->reserved_bytes < g->total_bytes ? g->reserved_bytes : 0;
    uint64_t usable = g->total_bytes - reserved;
    // A machine is one node, whatever its count would mean alone.
    return str_format(a, "%s%dx%s:memory=%lluB", count > 8 ? "1x" : "", (int)count,
                      known ? known->name : "custom", (unsigned long long)usable);
}

// Of this machine, as Linux counts it.
static bool add_host_memory(struct settings *s, struct error *e)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0)
        return true;
    uint64_t bytes = (uint64_t)pages * (uint64_t)page;
    struct str text = str_format(s->arena, "%lluB", (unsigned long long)bytes);
    struct setting found = {STR("machine.memory"), text, STR("this machine")};
    return settings_set(s, found, e);
}

bool gpu_source_resolve(struct settings *s, struct error *e)
{
    const struct setting *item = settings_find_z(s, "gpu");
    if (!item || !str_equal_nocase(str_trim(item->value), STR("auto")))
        return true;
    struct nvml_gpu *gpus;
    ptrdiff_t count;
    struct str driver;
    if (!nvml_list(&gpus, &count, &driver, s->arena, e))
        return false;
    if (count == 0)
        return FAIL(e, IO, item->where, "this machine has an NVIDIA driver but no GPU");
    if (!all_alike(gpus, count))
        return FAIL(e, UNSUPPORTED, item->where,
                    "this machine has different GPUs (%s and others); name the ones to use",
                    gpus[0].name);
    struct setting found = {STR("gpu"), spec_of(s->arena, &gpus[0], count), STR("NVML")};
    return settings_set(s, found, e) && add_host_memory(s, e);
}
