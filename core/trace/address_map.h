// A map from device addresses to small numbers, used once per history to turn addresses into
// handles. Open addressing with linear probing; removal shifts later entries back, so the table's
// size follows the number of live blocks and not the length of the history.
#ifndef FATHOM_TRACE_ADDRESS_MAP_H
#define FATHOM_TRACE_ADDRESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

struct address_slot {
    uint64_t address;
    uint32_t value;
    bool used;
};

struct address_map {
    struct arena *arena;
    struct address_slot *slots;
    uint32_t mask; // slots - 1, a power of two less one
    uint32_t count;
};

struct address_map address_map_in(struct arena *a);

// False when the address is there already; nothing changes then.
bool address_map_add(struct address_map *m, uint64_t address, uint32_t value);
bool address_map_find(const struct address_map *m, uint64_t address, uint32_t *value);
bool address_map_remove(struct address_map *m, uint64_t address, uint32_t *value);

#endif
