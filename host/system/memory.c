// Reserving with mmap. MAP_NORESERVE keeps the reservation out of the system's commit accounting;
// a limit on address space (ulimit -v) is met by halving.
#include "host/system/memory.h"

#include <stdint.h>
#include <sys/mman.h>

#include "core/base/units.h"

// Under AddressSanitizer an arena poisons its whole block, which costs an eighth of it at once.
#if defined(__SANITIZE_ADDRESS__)
#define FIRST_TRY_BYTES (512 * MIB)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIRST_TRY_BYTES (512 * MIB)
#endif
#endif
#ifndef FIRST_TRY_BYTES
#define FIRST_TRY_BYTES (16 * GIB)
#endif
#define LEAST_BYTES (16 * MIB)

bool host_memory_reserve(struct host_memory *m, struct error *e)
{
    for (uint64_t bytes = FIRST_TRY_BYTES; bytes >= LEAST_BYTES; bytes /= 2) {
        void *block = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block != MAP_FAILED) {
            *m = (struct host_memory){block, (ptrdiff_t)bytes};
            return true;
        }
    }
    return FAIL(e, NO_MEMORY, STR_NONE, "the system refuses to reserve %llu MiB of address space",
                (unsigned long long)(LEAST_BYTES / MIB));
}

struct arena host_arena(const struct host_memory *m, void (*exhausted)(void *context))
{
    return arena_over(m->block, m->bytes, exhausted);
}

void host_memory_release(struct host_memory *m)
{
    if (m->block)
        munmap(m->block, (size_t)m->bytes);
    *m = (struct host_memory){0};
}
