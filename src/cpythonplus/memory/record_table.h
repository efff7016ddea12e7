/* From addresses to records, which stay where they are while the table grows.  Knows nothing of Python; a table
 * belongs to one thread at a time. */
#ifndef PLUS_MEMORY_RECORD_TABLE_H
#define PLUS_MEMORY_RECORD_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct plus_record_slot {
    const void *key; /* NULL: free */
    void *record;
};

struct plus_record_table {
    struct plus_record_slot *slots; /* open addressing, at most half full */
    size_t mask, count;             /* capacity - 1; records */
    size_t bytes;                   /* that the table and its records take */
    size_t record_bytes;            /* of one record */
    char *block;                    /* where the next record comes from; blocks are linked */
    size_t used;                    /* records of that block */
};

/* An empty table; nothing is allocated yet. */
#define PLUS_RECORD_TABLE(type) ((struct plus_record_table){.record_bytes = sizeof(type)})

/* The slot of a key (not NULL), or the one where it belongs.  There are slots. */
static inline size_t
plus_record_table_slot(const struct plus_record_table *table, const void *key)
{
    /* Objects lie at multiples of 16; the multiplier spreads neighbours (Knuth, TAOCP 3, 6.4). */
    uint64_t hash = ((uint64_t)(uintptr_t)key >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(hash >> 32) & table->mask;

    while (table->slots[i].key != key && table->slots[i].key != NULL) {
        i = (i + 1) & table->mask;
    }
    return i;
}

/* The record of a key; NULL: it has none. */
static inline void *
plus_record_table_find(const struct plus_record_table *table, const void *key)
{
    return table->slots == NULL ? NULL : table->slots[plus_record_table_slot(table, key)].record;
}

/* Gives a key, which has none, a record of zeros that begins with the key; NULL: no memory. */
void *
plus_record_table_add(struct plus_record_table *table, const void *key);

/* The record of a key, which gets one if it has none; NULL: no memory. */
static inline void *
plus_record_table_get(struct plus_record_table *table, const void *key)
{
    void *record = plus_record_table_find(table, key);

    return record != NULL ? record : plus_record_table_add(table, key);
}

/* The next slot in use at or behind `*at`, which begins with 0; NULL: there is none. */
const struct plus_record_slot *
plus_record_table_next(const struct plus_record_table *table, size_t *at);

/* Frees all; the table is empty then. */
void
plus_record_table_clear(struct plus_record_table *table);

#endif
