/* A first-in-first-out queue of waiting threads: the one mechanism under all primitives of this room.
 *
 *     object                      stack of thread A          stack of thread B
 *   +-----------------+         +------------------+       +------------------+
 *   | guard           |   head  | plus_waiter      |  next | plus_waiter      |
 *   | head ---------------------> state: WAITING   |-------> state: ASLEEP    |---> NULL
 *   | tail -------------------------------------------------->                |
 *   +-----------------+         +------------------+       +------------------+
 *
 * A waiter's node lies on its own stack.  The thread that ends the wait takes the node out of the queue under the
 * guard, then stores WOKEN or GRANTED in its state; from then on the node may be gone.  If the state was ASLEEP, the
 * sleeper is woken by address, which needs no living node.  A waiter that gives up (time-out, signal) takes itself out
 * under the guard, or finds that its wait was ended in time.
 *
 * While Python code runs in a thread, none of its waiters that could be given a thing is in the queue.  A thread that a
 * signal interrupts takes its waiter out first, runs the handlers, and queues it again.
 *
 * The guard is held for a few dozen instructions, never while sleeping and never while Python code runs; it does not
 * depend on the GIL, and holding the GIL does not replace it.
 *
 * fork: the guard contains the generation of the process.  In the child the other threads are gone.  The first thread
 * there that takes a guard of an older generation finds the queue as the fork left it, perhaps half changed, and begins
 * with an empty one.  So a fork needs no list of all objects, only a list of the forking thread's own waits for news,
 * which stay queued while signal handlers run.
 *
 * Nothing here knows of Python.  Functions ending in _nogil may sleep: give the GIL up first.
 */
#pragma once

#include "relay.h"
#include "spin.h"

#include "../../gil/scheduler/sched.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A waiter that has waited this long is handed the lock or item directly, so that no other thread can barge in.  This
 * happens at most once per object in this time, so that the throughput of the other threads does not suffer. */
#define PLUS_STARVING_NS UINT64_C(1000000)

enum plus_waiter_state {
    PLUS_WAITER_WAITING, /* polling, on its way to sleep, or busy with a signal */
    PLUS_WAITER_ASLEEP,  /* in the kernel */
    PLUS_WAITER_WOKEN,   /* out of the queue: try again, another thread may be faster */
    PLUS_WAITER_GRANTED, /* out of the queue; the waiter has got the lock, item or notification */
};

struct plus_waiter {
    _Atomic uint32_t state;          /* futex word */
    struct plus_waiter *next, *prev; /* under the guard */
    uint64_t start_ns;               /* when the wait began; 0: it has not begun */
    uint64_t look_ns;                /* when its wait ends once with SIGNAL, to look at the owner */
    uint64_t counted_ns;             /* the counts include the wait up to this time */
    uint64_t identity;               /* of the thread */
    void *item; /* handed over with GRANTED, or offered to a thread that takes; may be NULL */
    const void *object;            /* the object that it waits for, for reports; NULL: the lock */
    const char *doing;             /* the method that waits, for reports */
    const _Atomic uint64_t *owner; /* owner word of what it waits for; NULL: it has none */
    struct plus_lent lent;         /* the loan of its level to the owner, while it sleeps */
    bool takes;                    /* `item` is a place for an item: it may be granted one */
    bool queued;                   /* under the guard */
    bool heeds_signals; /* its waits end with PLUS_WAIT_SIGNAL; set by plus_waiter_init() */
    bool stays; /* it waits for a notification, and keeps its place while signal handlers run */
    bool interrupted; /* out of the queue for signal handlers: the same wait goes on */
    bool heard;       /* set by plus_waiter_leave(): the waiter had been woken */
    bool polled, caught, looked, rechecked;
    uint32_t parked_at_wake;    /* waitq.c's parked.count at the wake-up */
    int ended_on;               /* processor of the thread that ended the wait; -1: not ended */
    _Atomic uint64_t rested_ns; /* when the thread's rest will outweigh its use of the GIL */
    struct plus_relay *relay;   /* its relay, set at the end of its wait; NULL: none */
    struct plus_waitq *queue;   /* of a waiter with `stays`, while signal handlers run; else NULL */
    struct plus_waiter *outer;  /* the waiter with `stays` whose signal handler this one waits in */
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
    uint64_t handed_over_ns; /* when a starving waiter was last served */
    struct plus_spin spin;
    _Atomic uint32_t
        surplus;    /* things that came while no thread waited; written under the object's lock */
    uint8_t woken;  /* a waiter was taken out as WOKEN and is not back yet */
    uint8_t looked; /* of a lock: a waiter has looked at the owner, so the release tells */
    struct plus_wait_counts counts;
};

enum plus_wait_result {
    PLUS_WAIT_WOKEN,
    PLUS_WAIT_GRANTED,
    PLUS_WAIT_TIMED_OUT, /* no longer queued */
    PLUS_WAIT_SIGNAL,    /* still queued: plus_waiter_interrupt(), then run the handlers */
};

/* `queue` may be uninitialised memory. */
void
plus_waitq_init(struct plus_waitq *queue);

void
plus_waitq_lock(struct plus_waitq *queue);
void
plus_waitq_unlock(struct plus_waitq *queue);

/* Begins a new wait of the calling thread. */
void
plus_waiter_init(struct plus_waiter *waiter, bool heeds_signals);

/* Names what it waits for, for reports: the object (borrowed, it lives as long as the wait) and the method. */
static inline void
plus_waiter_tells(struct plus_waiter *waiter, const void *object, const char *doing)
{
    waiter->object = object;
    waiter->doing = doing;
}

/* Called with the guard held.  enqueue appends a new waiter.  It puts a waiter back to its former place if that was
 * woken in vain, or had left the queue for signal handlers. */
void
plus_waitq_enqueue(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_append(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_prepend(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waitq_remove(struct plus_waitq *queue, struct plus_waiter *waiter);

/* Ends the wait of a queued waiter, with the guard held: takes it out and stores `state` (WOKEN or GRANTED).  If it
 * sleeps, returns its word, for plus_waitq_rouse() after the guard was released; NULL: it is awake. */
_Atomic uint32_t *
plus_waitq_end(struct plus_waitq *queue, struct plus_waiter *waiter, enum plus_waiter_state state);

/* Wakes the sleeper on `word` with one system call; NULL: does nothing.  Called without the guard, so that the woken
 * thread does not block on it.  The node may be gone by now: its address is enough. */
void
plus_waitq_rouse(_Atomic uint32_t *word);

/* Ends the waits of the first `count` waiters as WOKEN and rouses them.  More than a few are roused by a relay; each
 * waiter has to call plus_waiter_arrived().  Called without the guard, which is taken several times for many waiters:
 * the caller keeps the object alive. */
void
plus_waitq_wake(struct plus_waitq *queue, uint32_t count);

/* How many threads wait, or waited a moment ago; exact with the guard held. */
static inline uint32_t
plus_waitq_length(const struct plus_waitq *queue)
{
    return atomic_load_explicit(&queue->length, memory_order_relaxed);
}

/* Counts a thing that came while no thread waited.  Called with the guard or the object's own lock held. */
static inline void
plus_waitq_count_surplus(struct plus_waitq *queue)
{
    uint32_t surplus = atomic_load_explicit(&queue->surplus, memory_order_relaxed);

    atomic_store_explicit(&queue->surplus, surplus + 1u, memory_order_relaxed);
}

/* Whether the first waiter has to be served before any other thread.  Called with the guard held. */
bool
plus_waitq_starves(const struct plus_waitq *queue, uint64_t now_ns);

/* Waits until the queued waiter is ended or the deadline has passed (CLOCK_MONOTONIC; PLUS_FUTEX_NO_DEADLINE: none; 0:
 * at once).  Called without the guard and without the GIL.  A thread that heeds signals gets PLUS_WAIT_SIGNAL after a
 * signal.  It also gets it without one: before its first sleep, if it polled, and 50 ms after it fell asleep, since a
 * signal may have come when there was no sleep to end.  Each thread gets it at look_ns. */
enum plus_wait_result
plus_waiter_wait_nogil(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns);

/* Called after a wait that has ended, with the GIL again: rouses the next waiter of the relay. */
static inline void
plus_waiter_arrived(struct plus_waiter *waiter)
{
    if (__builtin_expect(waiter->relay != NULL, 0)) {
        plus_relay_arrived(waiter->relay);
        waiter->relay = NULL;
    }
}

/* Called after PLUS_WAIT_SIGNAL, with the GIL, before any signal handler runs.  It returns:
 *
 *   WOKEN, GRANTED   The wait was ended meanwhile.  The caller runs no handler; the interpreter runs them later.
 *   SIGNAL           The waiter is out of the queue, unless it `stays`.  Run the handlers, then call
 *                    plus_waiter_resumed().  A waiter that was out tries again, and is queued again by
 *                    plus_waitq_enqueue().
 *
 * A waiter that can be given something must leave: a handler may want the same thing, and a thing that its own thread
 * has been given without knowing it would be neither free nor owned.  News of a condition are not a thing: as in the
 * standard library, a notification that comes while a handler runs counts for the wait that it interrupts. */
enum plus_wait_result
plus_waiter_interrupt(struct plus_waitq *queue, struct plus_waiter *waiter);

/* Brackets other Python code that runs while a waiter that `stays` is queued (after plus_waiter_interrupt() the waiter
 * is bracketed already).  If that code forks, the wait goes on in the child too. */
void
plus_waiter_stay(struct plus_waitq *queue, struct plus_waiter *waiter);
void
plus_waiter_resumed(struct plus_waiter *waiter);

/* Ends the wait of a waiter with `stays` after plus_waiter_interrupt().  GIL held.  Sets `heard` to whether the waiter
 * had been woken; if the wake-up was for one waiter only, the caller then wakes another one. */
void
plus_waiter_leave(struct plus_waitq *queue, struct plus_waiter *waiter);

/* Called in the child of a fork. */
void
plus_waitq_atfork_child(void);

/* Returns a consistent copy. */
struct plus_wait_counts
plus_waitq_counts(struct plus_waitq *queue);
