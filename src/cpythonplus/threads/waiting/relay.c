/* The protocol of the relay; relay.h explains its purpose.
 *
 * Three numbers decide which word may be roused: words[next], if next < filled and next < WIDTH + arrivals.
 *
 *   filled     0 while the words are added; stored once, by the thread that fills the relay
 *   arrivals   incremented by each waiter that arrives with the GIL, roused by the relay or awake by itself
 *   next       incremented by compare-and-swap: the thread that increments it rouses that word, so each is roused once
 *
 * A waiter may arrive before the relay is filled.  Then it rouses nobody, and the filling thread has to see its
 * arrival: that thread stores `filled` and then reads `arrivals`, an arrival stores `arrivals` and then reads
 * `filled`, all sequentially consistent, so one of the two sees the other.
 *
 * `users` counts the announced waiters and the filling thread; the last of them frees the relay.  It is incremented
 * before the waiter's wait is ended, because from then on the waiter may arrive.
 */
#include "relay.h"

#include "../../_base/process/futex.h"

#include <assert.h>
#include <stdlib.h>

struct plus_relay {
    _Atomic uint32_t users;    /* announced waiters that have not arrived, and the filling thread */
    _Atomic uint32_t arrivals; /* also counts before the relay is filled */
    _Atomic uint32_t filled;   /* number of words; 0 until all are in */
    _Atomic uint32_t next;     /* the first word that is not roused */
    uint32_t count, size;      /* used by the filling thread only */
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
