/* A first-in-first-out queue of waiting threads: the one mechanism under all primitives of this room.
 *
 *     object                      stack of thread A          stack of thread B
 *   +-----------------+         +------------------+       +------------------+
 *   | guard           |   head  | plus_waiter      |  next | plus_waiter      |
 *   | head ---------------------> state: WAITING   |-------> state: ASLEEP    |---> NULL
 *   | tail -------------------------------------------------->                |
 *   +-----------------+         +------------------+       +------------------+
 *
 * A waiter's node lies on its own stack.  Whoever ends the wait takes the node out of the queue under
 * the guard, then stores WOKEN or GRANTED in its state: from that moment the node may be gone.  If the
 * state was ASLEEP, the sleeper is woken by address, which needs no living node.  A waiter that gives
 * up (time-out, signal) takes itself out under the guard, or finds that it was ended in time.
 *
 * No waiter that could be given a thing is in the queue while Python code runs in its thread.  A thread that is
 * interrupted by a signal takes its waiter out first, runs the handlers, and queues it again.
 *
 * The guard is held for a few dozen instructions, never while sleeping and never while Python code
 * runs; it does not depend on the GIL, and holding the GIL does not replace it.
 *
 * fork: the guard carries the generation of the process.  In the child, whose other threads are gone,
 * the first to take a guard of an older generation finds the queue as the fork left it, perhaps half
 * changed, and begins with an empty one.  So a fork needs no list of all objects, only one of the
 * forking thread's own waits for news, which stay queued while signal handlers run.
 *
 * Nothing here knows of Python.  Functions ending in _nogil may sleep: give the GIL up first.
 */
#ifndef PLUS_THREADS_WAITQ_H
#define PLUS_THREADS_WAITQ_H

#include "relay.h"
#include "spin.h"

#include "../../gil/scheduler/sched.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A waiter that has waited this long gets what it waits for handed over: nobody can barge in then.
 * At most one of an object's waiters in such a time, so that the others' throughput stays. */
#define PLUS_STARVING_NS UINT64_C(1000000)

enum plus_waiter_state {
    PLUS_WAITER_WAITING, /* polling, on its way to sleep, or busy with a signal */
    PLUS_WAITER_ASLEEP,  /* in the kernel */
    PLUS_WAITER_WOKEN,   /* out of the queue: look again, somebody else may be faster */
    PLUS_WAITER_GRANTED, /* out of the queue, with what it waited for */
};

struct plus_waiter {
    _Atomic uint32_t state;          /* futex word */
    struct plus_waiter *next, *prev; /* under the guard */
    uint64_t start_ns;               /* when the wait began; 0: not yet */
    uint64_t counted_ns;             /* up to when it is in the counts */
    uint64_t identity;               /* of the thread */
    void *item; /* handed over with GRANTED, or offered to who takes; may be NULL */
    const _Atomic uint64_t *owner; /* by identity, of what it waits for; NULL: it has none */
    struct plus_lent lent;         /* its place, to the owner, while it sleeps */
    bool takes;                    /* `item` is a place for one: may be granted one */
    bool queued;                   /* under the guard */
    bool heeds_signals; /* the thread whose waits end with PLUS_WAIT_SIGNAL; the owner sets it */
    bool stays;         /* it waits for news alone, and keeps its place while signal handlers run */
    bool interrupted;   /* out of the queue for signal handlers: the same wait goes on */
    bool heard;         /* it left, and had been woken */
    bool polled, caught, looked, rechecked;
    uint32_t parked_at_wake;    /* plus_parked at the moment of the wake-up */
    int ended_on;               /* the processor of whoever ended it; -1: nobody has */
    _Atomic uint64_t rested_ns; /* when its thread will have rested for what it used */
    struct plus_relay *relay;   /* set with the end of its wait; NULL: none */
    struct plus_waitq *queue;   /* set while handlers run and it stays */
    struct plus_waiter *outer;  /* the one that stays in whose handlers this one waits */
};

/* Written under the guard. */
struct plus_wait_counts {
    uint32_t waits;
    uint32_t contended;
    uint32_t timeouts;
    uint32_t spins;
    uint32_t spins_paid;
    uint32_t hand_overs;
    uint64_t total_ns;
    uint64_t longest_ns;
};

struct plus_waitq {
    _Atomic uint32_t guard;  /* generation * 2 + 1 if held */
    _Atomic uint32_t length; /* written under the guard; a reader without it may see an old value */
    struct plus_waiter *head, *tail;
    uint64_t handed_over_ns; /* when a starving waiter was served last */
    struct plus_spin spin;
    _Atomic uint32_t
        surplus;   /* things that came while nobody waited; written by who has the lock that
                                 they are under */
    uint8_t woken; /* taken out as WOKEN and not yet back */
    struct plus_wait_counts counts;
};

enum plus_wait_result {
    PLUS_WAIT_WOKEN,
    PLUS_WAIT_GRANTED,
    PLUS_WAIT_TIMED_OUT, /* no longer queued */
    PLUS_WAIT_SIGNAL,    /* still queued: plus_waiter_interrupt(), then run the handlers */
};

/* `queue` is memory of zeros or whatever. */
void
plus_waitq_init(struct plus_waitq *queue);

void
plus_waitq_lock(struct plus_waitq *queue);
void
plus_waitq_unlock(struct plus_waitq *queue);

/* A new wait of the calling thread. */
void
plus_waiter_init(struct plus_waiter *waiter, bool heeds_signals);

/* With the guard held.  enqueue appends a new waiter, and puts one that was woken in vain, or was out for signal
 * handlers, where it stood. */
void
plus_waitq_enqueue(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_append(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_prepend(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_remove(struct plus_waitq *queue, struct plus_waiter *waiter);

/* Ends the wait of a queued waiter, with the guard held: takes it out and stores `state` (WOKEN or
 * GRANTED).  Returns the word of a sleeper, which plus_waitq_rouse is to be called with after the
 * guard was given back, or NULL if it is awake. */
_Atomic uint32_t *
plus_waitq_end(struct plus_waitq *queue, struct plus_waiter *waiter, enum plus_waiter_state state);

/* Wakes the sleeper on `word`: one system call; NULL: nothing.  Without the guard, so that the woken
 * thread does not run into it.  The node may be gone by now: its address is enough. */
void
plus_waitq_rouse(_Atomic uint32_t *word);

/* Ends the waits of the first `count` waiters as WOKEN, and rouses them: more than a few by a relay, each
 * of which has to say plus_waiter_arrived.  Without the guard, which is taken more than once for many: the
 * caller keeps the object alive. */
void
plus_waitq_wake(struct plus_waitq *queue, uint32_t count);

/* How many wait, or did a moment ago; exact with the guard held. */
static inline uint32_t
plus_waitq_length(const struct plus_waitq *queue)
{
    return atomic_load_explicit(&queue->length, memory_order_relaxed);
}

/* Something came and nobody waits for it.  With the guard or the object's own lock held. */
static inline void
plus_waitq_count_surplus(struct plus_waitq *queue)
{
    uint32_t surplus = atomic_load_explicit(&queue->surplus, memory_order_relaxed);

    atomic_store_explicit(&queue->surplus, surplus + 1u, memory_order_relaxed);
}

/* Whether the first waiter has to be served before any other thread.  With the guard held. */
bool
plus_waitq_starves(const struct plus_waitq *queue, uint64_t now_ns);

/* Waits until the queued waiter is ended or the dead line (CLOCK_MONOTONIC, PLUS_FUTEX_NO_DEADLINE
 * for none, 0 for at once) has passed.  Without the guard and without the GIL.  A thread that heeds
 * signals gets PLUS_WAIT_SIGNAL after one, and without one before it sleeps for the first time, if it
 * polled, and once 50 ms after it fell asleep: a signal may have come when no sleep was there to end. */
enum plus_wait_result
plus_waiter_wait_nogil(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns);

/* After a wait that has ended, with the GIL again: rouses the next one of a crowd. */
static inline void
plus_waiter_arrived(struct plus_waiter *waiter)
{
    if (__builtin_expect(waiter->relay != NULL, 0)) {
        plus_relay_arrived(waiter->relay);
        waiter->relay = NULL;
    }
}

/* After PLUS_WAIT_SIGNAL, with the GIL, before any signal handler runs.
 *
 * WOKEN, GRANTED   the wait was ended meanwhile, as told: no handler runs now, the interpreter runs them later
 * SIGNAL           the waiter is out of the queue, unless it `stays`.  Run the handlers, then call plus_waiter_resumed().
 *                  One that was out looks again at what it waits for, and is queued again by plus_waitq_enqueue()
 *
 * A waiter that can be given something must leave: a handler may want the same thing, and what its own thread has been
 * given without knowing it would be neither free nor owned.  News of a condition are no thing: as in the standard
 * library, a notification that comes while a handler runs counts for the wait around it. */
enum plus_wait_result
plus_waiter_interrupt(struct plus_waitq *queue, struct plus_waiter *waiter);

/* Around other Python code that runs while one that `stays` is queued: after plus_waiter_interrupt() it was called.  If
 * that code forks, the wait goes on in the child too. */
void
plus_waiter_stay(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waiter_resumed(struct plus_waiter *waiter);

/* Gives up the wait of one that stayed, with the GIL.  `heard` says whether news came meanwhile: where they were for one
 * alone, they are another's now. */
void
plus_waiter_leave(struct plus_waitq *queue, struct plus_waiter *waiter);

/* In the child of a fork. */
void
plus_waitq_atfork_child(void);

/* A consistent copy. */
struct plus_wait_counts
plus_waitq_counts(struct plus_waitq *queue);

#endif
