#include "record_table.h"

#include "copy_memory.h"

#include <string.h>

/* The records of a block: large records have a block each. */
#define BLOCK_RECORDS(table) ((table)->record_bytes < 1024 ? (size_t)128 : (size_t)1)

/* A block begins with the address of the block before. */
static int
add_block(struct plus_record_table *table)
{
    size_t bytes = sizeof(char *) + BLOCK_RECORDS(table) * table->record_bytes;
    char *block = plus_calloc(1, bytes);

    if (block == NULL) {
        return -1;
    }
    memcpy(block, &table->block, sizeof(char *));
    table->block = block;
    table->used = 0;
    table->block_bytes += bytes;
    return 0;
}

void *
plus_record_table_add(struct plus_record_table *table, const void *key)
{
    if ((table->block == NULL || table->used == BLOCK_RECORDS(table)) && add_block(table) < 0) {
        return NULL;
    }
    struct plus_address_slot *slot = plus_address_table_get(&table->addresses, key);
    if (slot == NULL) {
        return NULL;
    }
    slot->record = table->block + sizeof(char *) + table->record_bytes * table->used++;
    memcpy(slot->record, &key, sizeof key);
    return slot->record;
}

void
plus_record_table_clear(struct plus_record_table *table)
{
    while (table->block != NULL) {
        char *block = table->block;
        memcpy(&table->block, block, sizeof(char *));
        plus_free(block);
    }
    plus_address_table_clear(&table->addresses);
    *table = (struct plus_record_table){.record_bytes = table->record_bytes};
}
