// Memory of one request. Whoever opens a request gives it one block; everything the request makes
// lives there and dies with it, so nothing is ever freed piece by piece. Scratch work takes a
// struct arena by value: what it took is given back when the function returns.
//
// Exhaustion is not an error a caller can handle: it calls the hook of whoever opened the request,
// which must not return: the program ends with a message, the library jumps back to its door.
// Under AddressSanitizer the unused tail and a gap after every block are poisoned.
#ifndef FATHOM_BASE_ARENA_H
#define FATHOM_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/compiler.h"

struct arena {
    char *begin;
    char *end;
    void (*exhausted)(void *context); // does not return
    void *context;
};

// Owns nothing: the block stays the caller's, and must not be on the stack (it stays poisoned).
// `exhausted` may be NULL, then exhaustion traps; its context is NULL unless the owner sets one.
struct arena arena_over(void *block, ptrdiff_t bytes, void (*exhausted)(void *context));

// Zeroed memory for `count` objects, aligned; never NULL. A count below zero is one that was too
// large for its type, which no arena has room for.
void *arena_take(struct arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count);

// The same with whatever was there before: for what is filled at once.
void *arena_room(struct arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count);

// Grows the arena's last block in place; false when something was taken after it.
bool arena_extend(struct arena *a, const void *block, ptrdiff_t bytes, ptrdiff_t more);

// A growing array: where its items are once there is room for one more, and its new capacity. Moved
// items leave their old place behind.
void *arena_grow(struct arena *a, void *items, ptrdiff_t size, ptrdiff_t count,
                 ptrdiff_t *capacity);

#define NEW(arena, type, count)  ((type *)arena_take(arena, sizeof(type), _Alignof(type), count))
#define ROOM(arena, type, count) ((type *)arena_room(arena, sizeof(type), _Alignof(type), count))

#endif
