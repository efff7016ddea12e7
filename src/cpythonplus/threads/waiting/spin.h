/* What a waiter does before it sleeps, and for how long.
 *
 * Waking an idle processor costs the kernel about 20 us each way; a waiter that polls is there at
 * once.  Polling pays only where the other side runs at the same time, on another processor, and is
 * about to be done.  On one processor a waiter yields it a few times instead: if the other side answers
 * in its turn, nobody has to be put to sleep and woken, which halves the changes of threads.  That is also
 * so where there are more but the other side is on this one: another process computes on the others.
 *
 * Nobody does either: where another thread does on the same object already; where as many threads
 * poll in the process as would leave no processor to work; and where it lately did not pay (an object
 * learns it from its own waits, a new one begins with what others learnt).
 *
 * Nothing here knows of Python; the functions neither sleep nor lock.
 */
#ifndef PLUS_THREADS_SPIN_H
#define PLUS_THREADS_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest that a waiter polls. */
#define PLUS_SPIN_NS UINT64_C(30000)

/* How often it yields at most. */
#define PLUS_SPIN_YIELDS 3u

/* A wait that was longer than this would not have been caught by polling even without the time that
 * waking up takes. */
#define PLUS_SPIN_LONG_NS UINT64_C(100000)

/* What an object knows of polling.  Written under its guard, but for `poller`. */
struct plus_spin {
    uint8_t credit;          /* 0: does not pay; PLUS_SPIN_NEW: never waited for */
    uint8_t passed;          /* waits that did not poll, since the last trial */
    _Atomic uint32_t poller; /* who polls or yields, 0: nobody */
};

#define PLUS_SPIN_NEW UINT8_C(255)

enum plus_spin_way {
    PLUS_SPIN_NOT,
    PLUS_SPIN_POLL,
    PLUS_SPIN_YIELD,
    PLUS_SPIN_FULL, /* it would pay, but there is no place */
};

/* How long a place is waited for. */
#define PLUS_SPIN_PLACE_NS UINT64_C(1000)

/* Decides for one wait of `poller`, and books the place: plus_spin_ended must follow, unless the answer is
 * NOT or FULL.  beside: whoever is to end the wait runs on the same processor, as far as is known.  Under
 * the object's guard. */
enum plus_spin_way
plus_spin_begins(struct plus_spin *spin, uint32_t poller, bool beside, uint64_t now_ns);

/* The wait of `waiter` was ended: it polls no more, whether it knows that or not, and another one may,
 * though this one has not had its processor back yet.  Under the object's guard. */
void
plus_spin_met(struct plus_spin *spin, uint32_t waiter);

/* Waits a moment for a place, after FULL: two threads that answer each other come to poll while the other one, whose
 * wait they have just ended, is still on its way out.  False: there is none.  Without the guard. */
bool
plus_spin_await_place(uint64_t now_ns);

/* The place is free again.  The waiter, without any lock. */
void
plus_spin_ended(struct plus_spin *spin, uint32_t poller, enum plus_spin_way way);

/* What came of a wait: whether it polled (or yielded), whether that caught it, how long it lasted in all.  Under
 * the object's guard. */
void
plus_spin_learn(struct plus_spin *spin, bool polled, bool caught, uint64_t waited_ns);

/* In the child of a fork: nobody polls. */
void
plus_spin_atfork_child(void);

#endif
