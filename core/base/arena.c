// Bump allocation from one end of the block, with a poisoned gap after each object when
// AddressSanitizer is on, so that an overrun inside the arena is caught like one on the heap.
#include "core/base/arena.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif

#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 16 };
#define POISON(p, n)   __asan_poison_memory_region(p, (size_t)(n))
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, (size_t)(n))
#else
enum { GAP_BYTES = 0 };
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

struct arena arena_over(void *block, ptrdiff_t bytes, void (*exhausted)(void *context))
{
    ASSERT(block && bytes >= 0);
    char *begin = block;
    POISON(begin, bytes);
    return (struct arena){.begin = begin, .end = begin + bytes, .exhausted = exhausted};
}

static void NO_RETURN exhausted(const struct arena *a)
{
    if (a->exhausted)
        a->exhausted(a->context);
    __builtin_trap();
}

static inline void *take(struct arena *a, ptrdiff_t align, ptrdiff_t bytes)
{
    ptrdiff_t padding = (ptrdiff_t)(-(uintptr_t)a->begin & (uintptr_t)(align - 1));
    if (bytes > a->end - a->begin - padding - GAP_BYTES)
        exhausted(a);
    char *block = a->begin + padding;
    a->begin = block + bytes + GAP_BYTES;
    UNPOISON(block, bytes);
    POISON(block + bytes, GAP_BYTES);
    return block;
}

static inline ptrdiff_t bytes_of(ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ASSERT(size > 0 && align > 0);
    ptrdiff_t bytes;
    return count < 0 || __builtin_mul_overflow(size, count, &bytes) ? PTRDIFF_MAX : bytes;
}

void *arena_room(struct arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    return take(a, align, bytes_of(size, align, count));
}

void *arena_take(struct arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ptrdiff_t bytes = bytes_of(size, align, count);
    void *block = take(a, align, bytes);
    return bytes ? memset(block, 0, (size_t)bytes) : block;
}

bool arena_extend(struct arena *a, const void *block, ptrdiff_t bytes, ptrdiff_t more)
{
    ASSERT(bytes >= 0 && more >= 0);
    if (!block || (const char *)block + bytes + GAP_BYTES != a->begin)
        return false;
    if (more > a->end - a->begin)
        exhausted(a);
    char *tail = a->begin - GAP_BYTES;
    a->begin += more;
    UNPOISON(tail, more);
    POISON(tail + more, GAP_BYTES);
    return true;
}

void *arena_grow(struct arena *a, void *items, ptrdiff_t size, ptrdiff_t count, ptrdiff_t *capacity)
{
    if (count < *capacity)
        return items;
    ptrdiff_t doubled = *capacity ? 2 * *capacity : 32;
    char *grown = arena_room(a, size, _Alignof(max_align_t), doubled);
    if (count)
        memcpy(grown, items, (size_t)(size * count));
    memset(grown + size * count, 0, (size_t)(size * (doubled - count)));
    *capacity = doubled;
    return grown;
}
