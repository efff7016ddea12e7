/* One record for each thread that has ever met the scheduled GIL, and the list of them.
 *
 * Locks: the GIL's own mutex may be held while the registry's lock is taken, never the other way round.
 *
 * fork: plus_threads_atfork_* ; in the child only the calling thread's record is left.
 */
#ifndef PLUS_GIL_THREAD_H
#define PLUS_GIL_THREAD_H

#include "../../_base/process/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How much of the GIL a thread has used lately, and what it usually does (policy.h). */
struct plus_usage {
    uint64_t account_ns; /* held, less stayed away; the thread has rested when it comes to 0 */
    uint64_t credit_ns;  /* for having been kept waiting: holds use it up first, a rest ends it */
    uint64_t peak_ns;    /* the most that it came to since then */
    uint64_t usual_ns;   /* the peak that it usually comes to before it rests; 0: not known */
    uint64_t holding_ns, resting_ns; /* of its recent past, by which its demand is measured */
    uint64_t brief_ns;               /* moving average of the holds that it ended unasked */
    bool asked;                      /* the last hold ended because it was asked */
};

/* A level that a lighter thread lends to the owner of what it waits for (loans.h). */
struct plus_loan {
    const _Atomic uint64_t *thing; /* compared only */
    uint32_t level;                /* the best of the lenders' */
    uint32_t lenders;
};

#define PLUS_LOANS 4u

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
    uint64_t ticket;        /* place in its level; 0: takes a new one with its next wait */
    uint64_t wait_start_ns; /* 0: not waiting */
    uint64_t acquired_ns;   /* when it last took the GIL; 0: it does not hold it */
    uint64_t released_ns;   /* when it last gave it up, to see how long it stayed away */
    uint64_t forced_ns;     /* of that absence: waiting for the switch; own thread, no lock */
    uint64_t turn_used_ns;  /* of its turn, by holds that were interrupted */
    struct plus_usage usage;
    uint32_t impatience; /* waits left in which it uses the short timer */
    uint32_t level;      /* its place among the queues, since it was queued last */
    struct plus_loan loans[PLUS_LOANS];
    _Atomic uint32_t loan_count;       /* read by the thread itself without the mutex */
    const _Atomic uint64_t *waits_for; /* what it sleeps for, by its owner's word; NULL: nothing */
    bool queued;
    bool missed;     /* it was granted the GIL since its wait began, and found it taken again */
    bool reporting;  /* inside the reporter of an overlong section; own thread only */
    bool asks_again; /* its request was not answered within an interval */
    uint32_t joined; /* the switch sequence at which it asked because a request went unheard */
    bool signalled;  /* the main thread, with a signal to handle: served first */
    uint64_t kernel_slice_ns; /* what it was before it was made long; 0: it is not long */
    bool kernel_slice_asked;  /* since it last was a job: once is enough, whatever came of it */
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

/* The same for callers who can tell: NULL when out of memory. */
struct plus_thread *
plus_thread_try_self(void);

/* Calls visit(thread, argument) for the record with this serial, under the registry's lock, if there is
 * one. */
void
plus_threads_visit_one(uint64_t serial, void (*visit)(struct plus_thread *thread, void *argument),
                       void *argument);

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
