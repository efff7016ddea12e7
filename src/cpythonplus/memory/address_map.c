/* Open addressing, linear probing, at most half full. */
#include "address_map.h"

#include <errno.h>
#include <stdlib.h>

struct plus_address_entry {
    const void *address;
    uint32_t index;
};

int
plus_address_map_init(struct plus_address_map *map, size_t count)
{
    size_t capacity = 16;

    while (capacity < count * 2) {
        capacity *= 2;
    }
    map->entries = calloc(capacity, sizeof *map->entries);
    map->mask = capacity - 1;
    return map->entries == NULL ? -ENOMEM : 0;
}

void
plus_address_map_free(struct plus_address_map *map)
{
    free(map->entries);
    map->entries = NULL;
}

/* Where the address is, or where it belongs. */
static struct plus_address_entry *
slot_of(const struct plus_address_map *map, const void *address)
{
    /* Objects lie at multiples of 16; the multiplier spreads neighbours (Knuth, TAOCP 3, 6.4). */
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(hash >> 20) & map->mask;

    while (map->entries[i].address != NULL && map->entries[i].address != address) {
        i = (i + 1) & map->mask;
    }
    return &map->entries[i];
}

uint32_t
plus_address_map_add(struct plus_address_map *map, const void *address, uint32_t index)
{
    struct plus_address_entry *slot = slot_of(map, address);

    if (slot->address == NULL) {
        slot->address = address;
        slot->index = index;
    }
    return slot->index;
}

uint32_t
plus_address_map_find(const struct plus_address_map *map, const void *address)
{
    struct plus_address_entry *slot = slot_of(map, address);

    return slot->address == NULL ? PLUS_NO_INDEX : slot->index;
}
