#include "relay.h"

#include "../_base/futex.h"

#include <assert.h>
#include <stdlib.h>

struct plus_relay {
    _Atomic uint32_t users;    /* those who are expected, and who fills it */
    _Atomic uint32_t arrivals; /* also before the filling is over */
    _Atomic uint32_t filled;   /* 0 until it is */
    _Atomic uint32_t next;     /* the first word that is not roused */
    uint32_t count, size;      /* own: of who fills it */
    _Atomic uint32_t *words[];
};

struct plus_relay *
plus_relay_new(uint32_t size)
{
    struct plus_relay *relay = malloc(sizeof(*relay) + size * sizeof(relay->words[0]));

    if (relay != NULL) {
        atomic_init(&relay->users, 1);
        atomic_init(&relay->arrivals, 0);
        atomic_init(&relay->filled, 0);
        atomic_init(&relay->next, 0);
        relay->count = 0;
        relay->size = size;
    }
    return relay;
}

void
plus_relay_expect(struct plus_relay *relay)
{
    atomic_fetch_add(&relay->users, 1);
}

void
plus_relay_add(struct plus_relay *relay, _Atomic uint32_t *word)
{
    assert(relay->count < relay->size);
    relay->words[relay->count++] = word;
}

/* Who fills stores `filled` and then reads `arrivals`; who arrives stores `arrivals` and then reads
 * `filled`.  Both are sequentially consistent, so one of the two sees the other. */
static void
rouse(struct plus_relay *relay)
{
    uint32_t next = atomic_load(&relay->next);

    for (;;) {
        uint32_t limit = PLUS_RELAY_WIDTH + atomic_load(&relay->arrivals);

        if (next >= atomic_load(&relay->filled) || next >= limit) {
            return;
        }
        if (atomic_compare_exchange_weak(&relay->next, &next, next + 1u)) {
            plus_futex_wake(relay->words[next], 1);
            next = atomic_load(&relay->next);
        }
    }
}

static void
leave(struct plus_relay *relay)
{
    if (atomic_fetch_sub(&relay->users, 1) == 1) {
        free(relay);
    }
}

void
plus_relay_start(struct plus_relay *relay)
{
    atomic_store(&relay->filled, relay->count);
    rouse(relay);
    leave(relay);
}

void
plus_relay_arrived(struct plus_relay *relay)
{
    atomic_fetch_add(&relay->arrivals, 1);
    rouse(relay);
    leave(relay);
}
