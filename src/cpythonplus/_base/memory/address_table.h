/* A hash table from addresses to a number or a pointer.  Knows nothing of Python; a table belongs to one thread at a
 * time, and a forked child has a copy. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct plus_address_slot {
    const void *key; /* NULL: free */
    union {
        void *record;
        uintptr_t number;
    };
};

/* All zero: empty. */
struct plus_address_table {
    struct plus_address_slot *slots; /* NULL: none yet */
    size_t mask, count;              /* capacity - 1, a power of two minus 1; slots in use */
};

/* Objects are at multiples of 16; the multiplier spreads neighbours (Knuth, TAOCP 3, 6.4).  The lowest bits of the
 * result must not be used: they are 0 for multiples of a larger power of two. */
static inline uint64_t
plus_address_hash(const void *address)
{
    return ((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
}

/* The slot of a key (not NULL), or the free one for it; a caller that fills that one increases `count`.  The table must
 * have slots. */
static inline struct plus_address_slot *
plus_address_table_slot(const struct plus_address_table *table, const void *key)
{
    size_t i = (size_t)(plus_address_hash(key) >> 20) & table->mask;

    while (table->slots[i].key != key && table->slots[i].key != NULL) {
        i = (i + 1) & table->mask;
    }
    return &table->slots[i];
}

/* NULL if the key is missing. */
static inline struct plus_address_slot *
plus_address_table_find(const struct plus_address_table *table, const void *key)
{
    struct plus_address_slot *slot =
        table->slots == NULL ? NULL : plus_address_table_slot(table, key);

    return slot == NULL || slot->key == NULL ? NULL : slot;
}

/* Make room for `count` more keys, without another allocation; 0, or -ENOMEM.  Slots found before are no longer
 * valid. */
int
plus_address_table_reserve(struct plus_address_table *table, size_t count);

/* The slot of a key (not NULL), which is added with 0 if it is missing; NULL if there is no memory.  Slots found before
 * are no longer valid. */
static inline struct plus_address_slot *
plus_address_table_get(struct plus_address_table *table, const void *key)
{
    if (table->count >= (table->mask + 1) / 2 && plus_address_table_reserve(table, 1) < 0) {
        return NULL;
    }
    struct plus_address_slot *slot = plus_address_table_slot(table, key);

    if (slot->key == NULL) {
        slot->key = key;
        table->count++;
    }
    return slot;
}

/* The next slot in use at or behind `*at`, which begins with 0; NULL if there is none. */
const struct plus_address_slot *
plus_address_table_next(const struct plus_address_table *table, size_t *at);

/* The bytes of the table. */
static inline size_t
plus_address_table_bytes(const struct plus_address_table *table)
{
    return table->slots == NULL ? 0 : (table->mask + 1) * sizeof *table->slots;
}

/* Free all slots; the table is empty then. */
void
plus_address_table_clear(struct plus_address_table *table);
