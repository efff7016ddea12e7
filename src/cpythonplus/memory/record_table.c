#include "record_table.h"

#include <stdlib.h>
#include <string.h>

/* Of a block: large records have one each. */
#define BLOCK_RECORDS(table) ((table)->record_bytes < 1024 ? (size_t)128 : (size_t)1)
#define FIRST_SLOTS 256

static int
grow(struct plus_record_table *table)
{
    size_t before = table->slots == NULL ? 0 : table->mask + 1;
    size_t capacity = before == 0 ? FIRST_SLOTS : 2 * before;
    struct plus_record_table bigger = *table;

    bigger.slots = calloc(capacity, sizeof(struct plus_record_slot));
    if (bigger.slots == NULL) {
        return -1;
    }
    bigger.mask = capacity - 1;
    bigger.bytes += (capacity - before) * sizeof(struct plus_record_slot);
    for (size_t i = 0; i < before; i++) {
        if (table->slots[i].key != NULL) {
            bigger.slots[plus_record_table_slot(&bigger, table->slots[i].key)] = table->slots[i];
        }
    }
    free(table->slots);
    *table = bigger;
    return 0;
}

/* A block begins with the address of the one before. */
static int
add_block(struct plus_record_table *table)
{
    size_t bytes = sizeof(char *) + BLOCK_RECORDS(table) * table->record_bytes;
    char *block = calloc(1, bytes);

    if (block == NULL) {
        return -1;
    }
    memcpy(block, &table->block, sizeof(char *));
    table->block = block;
    table->used = 0;
    table->bytes += bytes;
    return 0;
}

void *
plus_record_table_add(struct plus_record_table *table, const void *key)
{
    if ((table->slots == NULL || table->count > table->mask / 2) && grow(table) < 0) {
        return NULL;
    }
    if ((table->block == NULL || table->used == BLOCK_RECORDS(table)) && add_block(table) < 0) {
        return NULL;
    }
    void *record = table->block + sizeof(char *) + table->record_bytes * table->used++;
    memcpy(record, &key, sizeof key);
    table->slots[plus_record_table_slot(table, key)] = (struct plus_record_slot){key, record};
    table->count++;
    return record;
}

const struct plus_record_slot *
plus_record_table_next(const struct plus_record_table *table, size_t *at)
{
    while (table->slots != NULL && *at <= table->mask) {
        const struct plus_record_slot *slot = &table->slots[(*at)++];
        if (slot->key != NULL) {
            return slot;
        }
    }
    return NULL;
}

void
plus_record_table_clear(struct plus_record_table *table)
{
    while (table->block != NULL) {
        char *block = table->block;
        memcpy(&table->block, block, sizeof(char *));
        free(block);
    }
    free(table->slots);
    *table = (struct plus_record_table){.record_bytes = table->record_bytes};
}
