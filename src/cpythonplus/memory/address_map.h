/* From addresses to small numbers.  Knows nothing of Python; a map belongs to one thread at a time. */
#ifndef PLUS_MEMORY_ADDRESS_MAP_H
#define PLUS_MEMORY_ADDRESS_MAP_H

#include <stddef.h>
#include <stdint.h>

#define PLUS_NO_INDEX UINT32_MAX

struct plus_address_map {
    struct plus_address_entry *entries;
    size_t mask; /* capacity - 1, a power of two minus 1 */
};

/* Room for `count` addresses, which has to be known before; 0, or -ENOMEM. */
int
plus_address_map_init(struct plus_address_map *map, size_t count);

/* Frees what _init took; the map may be all zero. */
void
plus_address_map_free(struct plus_address_map *map);

/* The address (not NULL) gets the index unless it has one; returns the index that it has now. */
uint32_t
plus_address_map_add(struct plus_address_map *map, const void *address, uint32_t index);

/* PLUS_NO_INDEX when the address is not there. */
uint32_t
plus_address_map_find(const struct plus_address_map *map, const void *address);

#endif
