// See address_map.h. Addresses are multiples of 512, so a multiplicative hash is taken from the
// product's upper bits.
#include "core/trace/address_map.h"

enum { FIRST_SLOTS = 1024 };

struct address_map address_map_in(struct arena *a)
{
    return (struct address_map){
        .arena = a, .slots = NEW(a, struct address_slot, FIRST_SLOTS), .mask = FIRST_SLOTS - 1};
}

static uint32_t home_of(const struct address_map *m, uint64_t address)
{
    return (uint32_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & m->mask;
}

// The address's slot, or the empty one where it would go.
static uint32_t slot_of(const struct address_map *m, uint64_t address)
{
    uint32_t i = home_of(m, address);
    while (m->slots[i].used && m->slots[i].address != address)
        i = (i + 1) & m->mask;
    return i;
}

static void grow(struct address_map *m)
{
    struct address_map larger = *m;
    uint32_t slots = (m->mask + 1) * 2;
    ASSERT(slots > m->mask);
    larger.mask = slots - 1;
    larger.slots = NEW(m->arena, struct address_slot, (ptrdiff_t)slots);
    for (uint32_t i = 0; i <= m->mask; i++)
        if (m->slots[i].used)
            larger.slots[slot_of(&larger, m->slots[i].address)] = m->slots[i];
    *m = larger;
}

bool address_map_add(struct address_map *m, uint64_t address, uint32_t value)
{
    uint32_t i = slot_of(m, address);
    if (m->slots[i].used)
        return false;
    m->slots[i] = (struct address_slot){address, value, true};
    if (++m->count > m->mask / 2)
        grow(m);
    return true;
}

bool address_map_find(const struct address_map *m, uint64_t address, uint32_t *value)
{
    uint32_t i = slot_of(m, address);
    if (m->slots[i].used)
        *value = m->slots[i].value;
    return m->slots[i].used;
}

bool address_map_remove(struct address_map *m, uint64_t address, uint32_t *value)
{
    uint32_t hole = slot_of(m, address);
    if (!m->slots[hole].used)
        return false;
    *value = m->slots[hole].value;
    for (uint32_t i = (hole + 1) & m->mask; m->slots[i].used; i = (i + 1) & m->mask) {
        uint32_t home = home_of(m, m->slots[i].address);
        // An entry may move back to the hole unless that would pass its home.
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].used = false;
    m->count--;
    return true;
}
