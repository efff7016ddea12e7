/* Open addressing with linear probing, at most half full: nearly every look-up reads one cache line.  Rejected: buckets
 * with lists, which take an allocation for each address; a tree, with four cache misses.  Keys are never removed, so
 * that no slot needs a mark for a removed one. */
#include "address_table.h"

#include "copy_memory.h"

#include <errno.h>

#define FIRST_SLOTS 256

int
plus_address_table_reserve(struct plus_address_table *table, size_t count)
{
    struct plus_address_table bigger = {.count = table->count};
    const struct plus_address_slot *slot;
    size_t capacity = FIRST_SLOTS;

    while (capacity / 2 < table->count + count) {
        capacity *= 2;
    }
    if (table->slots != NULL && capacity <= table->mask + 1) {
        return 0;
    }
    bigger.slots = plus_calloc(capacity, sizeof *bigger.slots);
    bigger.mask = capacity - 1;
    if (bigger.slots == NULL) {
        return -ENOMEM;
    }
    for (size_t at = 0; (slot = plus_address_table_next(table, &at)) != NULL;) {
        *plus_address_table_slot(&bigger, slot->key) = *slot;
    }
    plus_free(table->slots);
    *table = bigger;
    return 0;
}

const struct plus_address_slot *
plus_address_table_next(const struct plus_address_table *table, size_t *at)
{
    while (table->slots != NULL && *at <= table->mask) {
        const struct plus_address_slot *slot = &table->slots[(*at)++];
        if (slot->key != NULL) {
            return slot;
        }
    }
    return NULL;
}

void
plus_address_table_clear(struct plus_address_table *table)
{
    plus_free(table->slots);
    *table = (struct plus_address_table){.slots = NULL};
}
