/* A table from addresses to records, which stay in place while the table grows.  Knows nothing of Python; a table
 * belongs to one thread at a time. */
#pragma once

#include "address_table.h"

struct plus_record_table {
    struct plus_address_table addresses;
    size_t record_bytes; /* of one record */
    char *block;         /* the source of the next record; blocks are linked */
    size_t used;         /* number of records of that block */
    size_t block_bytes;  /* of all blocks */
};

/* An empty table; nothing is allocated yet. */
#define PLUS_RECORD_TABLE(type) ((struct plus_record_table){.record_bytes = sizeof(type)})

/* The record of a key (not NULL); NULL if it has none. */
static inline void *
plus_record_table_find(const struct plus_record_table *table, const void *key)
{
    const struct plus_address_table *addresses = &table->addresses;

    return addresses->slots == NULL ? NULL : plus_address_table_slot(addresses, key)->record;
}

/* Give a key, which has none, a record of zeros that begins with the key; NULL if there is no memory. */
void *
plus_record_table_add(struct plus_record_table *table, const void *key);

/* The record of a key, which is added if it is missing; NULL if there is no memory. */
static inline void *
plus_record_table_get(struct plus_record_table *table, const void *key)
{
    void *record = plus_record_table_find(table, key);

    return record != NULL ? record : plus_record_table_add(table, key);
}

/* The next record, in no order; `*at` begins with 0; NULL if there is none. */
static inline void *
plus_record_table_next(const struct plus_record_table *table, size_t *at)
{
    const struct plus_address_slot *slot = plus_address_table_next(&table->addresses, at);

    return slot == NULL ? NULL : slot->record;
}

/* The bytes of the table and its records. */
static inline size_t
plus_record_table_bytes(const struct plus_record_table *table)
{
    return plus_address_table_bytes(&table->addresses) + table->block_bytes;
}

/* Free all records; the table is empty then. */
void
plus_record_table_clear(struct plus_record_table *table);
