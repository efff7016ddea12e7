/* The heap of timers against a plain list: adding, removing wherever, taking the earliest. */
#include "tasklets/core/timers.h"

#include <assert.h>
#include <stdlib.h>

#define COUNT 500
#define STEPS 200000

static struct plus_timer *all[COUNT];

static uint64_t
earliest_of_all(void)
{
    uint64_t least = PLUS_NO_DEADLINE;

    for (int i = 0; i < COUNT; i++) {
        if (all[i]->place != 0 && all[i]->deadline_ns < least) {
            least = all[i]->deadline_ns;
        }
    }
    return least;
}

static void
check(const struct plus_timers *timers)
{
    for (uint32_t at = 0; at < timers->count; at++) {
        assert(timers->heap[at]->place == at + 1);
    }
    assert(plus_timers_earliest(timers) == earliest_of_all());
}

/* Few different times, so that many are the same. */
static void
add_and_remove(struct plus_timers *timers)
{
    uint32_t seed = 1;

    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1664525 + 1013904223;
        struct plus_timer *timer = all[(seed >> 8) % COUNT];

        if (timer->place != 0) {
            plus_timers_remove(timers, timer);
            assert(timer->place == 0);
        }
        else {
            assert(plus_timers_reserve(timers));
            plus_timers_add(timers, timer, (seed >> 16) % 1000);
        }
        if (step % 100 == 0) {
            check(timers);
        }
    }
}

static void
take_in_order(struct plus_timers *timers)
{
    uint64_t last = 0;

    while (timers->count > 0) {
        struct plus_timer *timer = timers->heap[0];

        assert(timer->deadline_ns >= last);
        last = timer->deadline_ns;
        plus_timers_remove(timers, timer);
    }
    assert(plus_timers_earliest(timers) == PLUS_NO_DEADLINE);
}

int
main(void)
{
    struct plus_timers timers = {0};

    for (int i = 0; i < COUNT; i++) {
        all[i] = calloc(1, sizeof(*all[i]));
        assert(all[i] != NULL);
    }
    assert(plus_timers_earliest(&timers) == PLUS_NO_DEADLINE);
    add_and_remove(&timers);
    take_in_order(&timers);
    add_and_remove(&timers);
    plus_timers_free(&timers);
    for (int i = 0; i < COUNT; i++) {
        assert(all[i]->place == 0);
        free(all[i]);
    }
    return 0;
}
