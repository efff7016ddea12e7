/* The table of addresses against what a plain array says, and records that stay where they are. */
#include "../gil/check.h"

#include "_base/memory/record_table.h"

#include <stdlib.h>

#define KEYS 20000
#define KEY(i) ((const void *)(UINT64_C(0x7f0000000000) + (uintptr_t)(i) * 48))

static void
test_against_an_array(void)
{
    struct plus_address_table table = {.count = 0};
    uintptr_t *known = calloc(KEYS, sizeof *known);
    uint64_t random = 88172645463325252u;
    size_t count = 0, seen = 0;

    CHECK(known != NULL);
    CHECK(plus_address_table_bytes(&table) == 0);
    for (uintptr_t i = 1; i < 5 * KEYS; i++) {
        size_t which = (size_t)(next_random(&random) % KEYS);
        const struct plus_address_slot *found = plus_address_table_find(&table, KEY(which));
        CHECK((found == NULL ? 0 : found->number) == known[which]);
        struct plus_address_slot *slot = plus_address_table_get(&table, KEY(which));
        CHECK(slot != NULL && slot->key == KEY(which) && slot->number == known[which]);
        count += known[which] == 0;
        slot->number = known[which] = i;
    }
    CHECK(table.count == count && 2 * count <= table.mask + 1);
    const struct plus_address_slot *slot;
    for (size_t at = 0; (slot = plus_address_table_next(&table, &at)) != NULL; seen++) {
        CHECK(slot->number == known[((uintptr_t)slot->key - (uintptr_t)KEY(0)) / 48]);
    }
    CHECK(seen == count);
    plus_address_table_clear(&table);
    CHECK(plus_address_table_find(&table, KEY(1)) == NULL);
    free(known);
}

static void
test_room_that_was_reserved(void)
{
    struct plus_address_table table = {.count = 0};

    CHECK(plus_address_table_reserve(&table, KEYS) == 0);
    const struct plus_address_slot *slots = table.slots;
    for (size_t i = 0; i < KEYS; i++) {
        CHECK(plus_address_table_get(&table, KEY(i)) != NULL);
    }
    CHECK(table.slots == slots);
    plus_address_table_clear(&table);
}

struct record {
    const void *key;
    size_t number;
};

static void
test_records_stay(void)
{
    struct plus_record_table table = PLUS_RECORD_TABLE(struct record);
    struct record **records = calloc(KEYS, sizeof *records);
    size_t seen = 0;

    CHECK(records != NULL);
    for (size_t i = 0; i < KEYS; i++) {
        CHECK(plus_record_table_find(&table, KEY(i)) == NULL);
        records[i] = plus_record_table_get(&table, KEY(i));
        CHECK(records[i] != NULL && records[i]->key == KEY(i) && records[i]->number == 0);
        records[i]->number = i;
    }
    for (size_t i = 0; i < KEYS; i++) {
        CHECK(plus_record_table_find(&table, KEY(i)) == records[i] && records[i]->number == i);
    }
    const struct record *record;
    for (size_t at = 0; (record = plus_record_table_next(&table, &at)) != NULL; seen++) {
        CHECK(record == records[record->number]);
    }
    CHECK(seen == KEYS);
    CHECK(plus_record_table_bytes(&table) >= KEYS * sizeof(struct record));
    plus_record_table_clear(&table);
    CHECK(plus_record_table_bytes(&table) == 0);
    free(records);
}

int
main(void)
{
    test_against_an_array();
    test_room_that_was_reserved();
    test_records_stay();
    return 0;
}
