/* The set of addresses against what a plain array says. */
#include "../gil/check.h"

#include "_base/memory/granules.h"

#include <stdbool.h>
#include <stdlib.h>

#define SPAN ((uintptr_t)1 << 26) /* 64 chunks */
#define FIRST ((uintptr_t)0x7f0000000000)

static void
test_against_an_array(void)
{
    struct plus_granules set = PLUS_GRANULES_EMPTY;
    bool *known = calloc(SPAN / 16, sizeof *known);
    uint64_t random = 88172645463325252u;

    CHECK(known != NULL);
    for (unsigned i = 0; i < 200000; i++) {
        uintptr_t granule = (uintptr_t)(next_random(&random) % (SPAN / 16));
        const void *address = (const void *)(FIRST + granule * 16 + next_random(&random) % 16);
        CHECK(plus_granules_has(&set, address) == known[granule]);
        CHECK(plus_granules_add(&set, address) == !known[granule]);
        known[granule] = true;
        CHECK(plus_granules_has(&set, address));
    }
    CHECK(plus_granules_bytes(&set) >= SPAN / 128);
    CHECK(plus_granules_bytes(&set) < SPAN / 100);
    plus_granules_clear(&set);
    CHECK(plus_granules_bytes(&set) == 0);
    CHECK(!plus_granules_has(&set, (const void *)FIRST));
    free(known);
}

/* A chunk here and there: the table grows and still finds them all. */
static void
test_far_apart(void)
{
    struct plus_granules set = PLUS_GRANULES_EMPTY;

    for (uintptr_t i = 0; i < 1000; i++) {
        CHECK(plus_granules_add(&set, (const void *)(i * i * 0x1234567000)) == 1);
    }
    for (uintptr_t i = 0; i < 1000; i++) {
        CHECK(plus_granules_add(&set, (const void *)(i * i * 0x1234567000)) == 0);
    }
    plus_granules_clear(&set);
}

int
main(void)
{
    test_against_an_array();
    test_far_apart();
    return 0;
}
