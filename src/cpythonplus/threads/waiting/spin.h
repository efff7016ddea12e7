/* Polling or yielding before a sleep: whether, and for how long.
 *
 * Waking an idle processor costs the kernel about 20 us each way; a waiter that polls is there at once.  Polling pays
 * only if the other side runs at the same time, on another processor, and is about to be done.  On one processor a
 * waiter yields it a few times instead: if the other side answers in its turn, no thread has to be put to sleep and
 * woken, which halves the thread switches.  The same holds with more processors if the other side runs on this one,
 * because another process computes on the others.
 *
 * A waiter does neither in three cases: another thread polls or yields on the same object already; as many threads of
 * the process poll as would leave no processor to work; or it lately did not pay (an object learns that from its own
 * waits, a new one begins with the experience of the others).
 *
 * Nothing here knows of Python; the functions neither sleep nor lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest that a waiter polls. */
#define PLUS_SPIN_NS UINT64_C(30000)

/* How often a waiter yields at most. */
#define PLUS_SPIN_YIELDS 3u

/* Polling would not have caught a longer wait, even without the time that waking up takes. */
#define PLUS_SPIN_LONG_NS UINT64_C(100000)

/* An object's experience with polling.  Written under its guard, except `poller`. */
struct plus_spin {
    uint8_t credit;          /* 0: polling does not pay; PLUS_SPIN_NEW: never waited for */
    uint8_t passed;          /* waits that did not poll, since the last trial */
    _Atomic uint32_t poller; /* the waiter that polls or yields; 0: none */
};

#define PLUS_SPIN_NEW UINT8_C(255)

enum plus_spin_way {
    PLUS_SPIN_NOT,
    PLUS_SPIN_POLL,
    PLUS_SPIN_YIELD,
    PLUS_SPIN_FULL, /* polling would pay, but all places are taken */
};

/* How long a waiter waits for a place. */
#define PLUS_SPIN_PLACE_NS UINT64_C(1000)

/* Decides for one wait of `poller`, and books a place: plus_spin_ended() must follow, unless the result is NOT or FULL.
 * beside: the thread that is to end the wait runs on the same processor, as far as is known.  Called under the object's
 * guard. */
enum plus_spin_way
plus_spin_begins(struct plus_spin *spin, uint32_t poller, bool beside, uint64_t now_ns);

/* The wait of `waiter` was ended.  It no longer counts as polling, even before it notices, so another waiter may poll.
 * Called under the object's guard. */
void
plus_spin_met(struct plus_spin *spin, uint32_t waiter);

/* Waits a moment for a place, after FULL: of two threads that answer each other, one comes to poll while the other,
 * whose wait it has just ended, still has its place.  False: there is none.  Called without the guard. */
bool
plus_spin_await_place(uint64_t now_ns);

/* Frees the place.  Called by the waiter, without any lock. */
void
plus_spin_ended(struct plus_spin *spin, uint32_t poller, enum plus_spin_way way);

/* Learns from a wait: whether it polled (or yielded), whether that caught its end, and how long it lasted in all.
 * Called under the object's guard. */
void
plus_spin_learn(struct plus_spin *spin, bool polled, bool caught, uint64_t waited_ns);

/* Called in the child of a fork, in which no thread polls. */
void
plus_spin_atfork_child(void);
