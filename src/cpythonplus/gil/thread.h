/* One record for each thread that has ever met the scheduled GIL, and the list of them.
 *
 * Lock ranks: the GIL's own mutex (rank 1) may be held while the registry's lock (rank 2) is taken,
 * never the other way round.
 *
 * fork: plus_threads_atfork_* ; in the child only the calling thread's record is left.
 */
#ifndef PLUS_GIL_THREAD_H
#define PLUS_GIL_THREAD_H

#include "../base/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum plus_class {
    PLUS_INTERACTIVE, /* gives the GIL up by itself soon */
    PLUS_BATCH,       /* held it for longer than the policy's grace without giving it up */
};

/* The futex word of a waiter.  Only the waiter writes WAITING and ASLEEP, only a waker, under the
 * GIL's mutex, the others. */
enum plus_parking {
    PLUS_PARK_WAITING, /* polling, or on its way to sleep */
    PLUS_PARK_ASLEEP,  /* in the kernel: whoever wants it must wake it */
    PLUS_PARK_GRANTED, /* the GIL is free for this thread, which has left the queue */
    PLUS_PARK_RECHECK, /* something changed: decide again, still in the queue */
};

struct plus_thread {
    /* Queue links and the scheduling state: read and written under the GIL's mutex. */
    struct plus_thread *next, *prev;
    uint64_t ticket;        /* place in its class; 0: takes a new one with its next wait */
    uint64_t wait_start_ns; /* 0: not waiting */
    uint64_t acquired_ns;   /* when it last took the GIL; 0: it does not hold it */
    uint64_t released_ns;   /* when it last gave it up, to see how long it stayed away */
    uint64_t forced_ns;     /* of that absence: waiting for the switch; own thread, no lock */
    uint64_t account_ns;    /* recent holding that was not given up by itself */
    uint32_t impatience;    /* waits left in which it uses the short timer */
    enum plus_class queued_as;
    bool queued;
    bool missed;      /* it was granted the GIL since its wait began, and found it taken again */
    bool reporting;   /* inside the reporter of an overlong section; own thread only */
    bool asks_again;  /* its request was not answered within an interval */
    uint32_t joined;  /* the switch sequence at which it asked because a request went unheard */
    bool has_turn;    /* among batch threads, unless it was lost while this one was away */
    bool ending_seen; /* the interpreter finalises, and this thread shall be told with a time-out */

    _Atomic uint32_t
        parking; /* enum plus_parking; on a line of its own would cost memory, not time */

    /* Atomic sections: depth is written by the thread itself and read by waiters; wanted is set by
     * waiters under the GIL's mutex and taken by the thread itself. */
    _Atomic uint32_t atomic_depth;
    _Atomic bool atomic_wanted;
    uint64_t atomic_start_ns; /* own thread only */

    /* Statistics, under the GIL's mutex. */
    uint64_t wait_ns, hold_ns, waits, switches;

    /* Fixed after creation; links under the registry's lock. */
    uint64_t serial; /* its identity: never used twice, unlike the record's address */
    pthread_t ident;
    pid_t native_id;
    struct plus_thread *registry_next, *registry_prev;
};

/* Private to the two functions below. */
extern _Thread_local struct plus_thread *plus_thread_own PLUS_FAST_TLS;
extern _Atomic(struct plus_thread *) plus_thread_single;

/* The calling thread's record, or NULL if it has none yet. */
static inline struct plus_thread *
plus_thread_if_known(void)
{
    return plus_thread_own;
}

/* The calling thread's record if no other thread has one, so that nobody can be waiting; else NULL.
 * A thread makes its record under the GIL's mutex before it waits, so whoever holds the mutex can
 * rely on the answer until letting go of it. */
static inline struct plus_thread *
plus_thread_if_single(void)
{
    struct plus_thread *own = plus_thread_own;

    return own == atomic_load_explicit(&plus_thread_single, memory_order_relaxed) ? own : NULL;
}

/* The calling thread's record, made at the first call; never NULL (aborts when out of memory, as
 * the interpreter does when it cannot make a thread state).  It goes with the thread. */
struct plus_thread *
plus_thread_self(void);

/* How many threads have a record: 1 means that nobody can be waiting. */
unsigned
plus_threads_count(void);

/* Calls visit(thread, argument) for each record, under the registry's lock. */
void
plus_threads_visit(void (*visit)(struct plus_thread *thread, void *argument), void *argument);

/* What to do, besides freeing it, with the record of a thread that ends; called by that thread,
 * without the registry's lock. */
void
plus_threads_on_exit(void (*callback)(struct plus_thread *thread));

/* Makes the thread-specific key.  0 or -errno.  Idempotent; called with the GIL held. */
int
plus_threads_init(void);

void
plus_threads_atfork_prepare(void);
void
plus_threads_atfork_parent(void);
void
plus_threads_atfork_child(void);

#endif
