/* One record for each thread that has ever met the scheduled GIL, and the registry of the records.
 *
 * Locks: the GIL's own mutex may be held while the registry's lock is taken, never the other way round.
 *
 * fork: in the child only the calling thread's record is left.
 */
#pragma once

#include "../../_base/histogram.h"
#include "../../_base/process/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How much of the GIL a thread has used lately, and its typical usage (policy.h). */
struct plus_usage {
    uint64_t account_ns; /* time held less time away; it is 0 after a rest */
    uint64_t credit_ns;  /* for having been kept waiting: holds use it up first, a rest ends it */
    uint64_t peak_ns;    /* the highest account since the last rest */
    uint64_t usual_ns;   /* the typical peak before a rest; 0: not known */
    uint64_t holding_ns, resting_ns; /* of the recent past; they give the thread's demand */
    uint64_t brief_ns;               /* moving average of the holds that the thread ended unasked */
    bool asked;                      /* the last hold ended because the thread was asked */
};

/* A level that a lighter thread lends to the owner of the thing that it waits for (loans.h). */
struct plus_loan {
    const _Atomic uint64_t *thing; /* compared only */
    uint32_t level;                /* the best level among the lenders */
    uint32_t lenders;
};

#define PLUS_LOANS 4u

/* The futex word of a waiter.  Only the waiter writes WAITING and ASLEEP; only a waker, under the GIL's mutex,
 * writes GRANTED and RECHECK. */
enum plus_parking {
    PLUS_PARK_WAITING, /* polling, or on its way to sleep */
    PLUS_PARK_ASLEEP,  /* in the kernel: a waker has to make the system call */
    PLUS_PARK_GRANTED, /* the GIL is free for this thread, which has left the queue */
    PLUS_PARK_RECHECK, /* something changed: the waiter decides again, still in the queue */
};

struct plus_thread {
    /* Queue links and the scheduling state: read and written under the GIL's mutex. */
    struct plus_thread *next, *prev;
    uint64_t ticket; /* place in the queue of its level; 0: the next wait takes a new ticket */
    uint64_t wait_start_ns; /* 0: not waiting */
    uint64_t acquired_ns;   /* when the hold began; 0: not holding, or the hold is not timed */
    uint64_t released_ns;   /* when the last hold ended, to measure the absence */
    uint32_t mark;      /* the observer's, of its last hold (sched.h); 0 while it holds the GIL */
    uint64_t forced_ns; /* part of that absence spent waiting for the switch; own thread, no lock */
    uint64_t turn_used_ns; /* part of its turn that interrupted holds have used */
    struct plus_usage usage;
    uint32_t impatience; /* number of waits left that use the short timer */
    uint32_t level;      /* level of the queue it is in or was in last */
    struct plus_loan loans[PLUS_LOANS];
    _Atomic uint32_t loan_count;       /* read by the thread itself without the mutex */
    const _Atomic uint64_t *waits_for; /* owner word of the thing that it sleeps for; NULL: none */
    const void *present_wait;          /* of threads/; written and read with the GIL; NULL: none */
    bool queued;
    bool missed;     /* since the wait began the thread was granted the GIL and found it taken */
    bool reporting;  /* inside the reporter of an overlong section; own thread only */
    bool asks_again; /* its request was not answered within an interval */
    uint32_t joined; /* the switch sequence at which it asked because a request went unheard */
    bool signalled;  /* the main thread, with a signal to handle: served first */
    uint64_t kernel_slice_ns; /* the kernel slice before it was lengthened; 0: not lengthened */
    bool kernel_slice_asked;  /* once since it became CPU-bound, whatever the kernel answered */
    bool ending_seen; /* the interpreter finalises: the next round ends the wait with ETIMEDOUT */

    _Atomic uint32_t
        parking; /* enum plus_parking; a cache line of its own would cost memory and save no time */

    /* Atomic sections.  atomic_depth is written by the thread itself and read by waiters; atomic_wanted is set by
     * waiters under the GIL's mutex and cleared by the thread itself. */
    _Atomic uint32_t atomic_depth;
    _Atomic bool atomic_wanted;
    uint64_t atomic_start_ns; /* own thread only */

    /* Statistics, written under the GIL's mutex. */
    uint64_t wait_ns, hold_ns, waits, switches;
    uint64_t stalls; /* those of this thread; written with the GIL, or in its release */
    struct plus_brief_histogram wait_times;

    /* Fixed after creation; the links are guarded by the registry's lock. */
    uint64_t serial; /* its identity: never reused, unlike the record's address */
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

/* The calling thread's record if no other thread has one, so that no thread can be waiting; else NULL.  A thread
 * makes its record under the GIL's mutex before it waits, so the holder of that mutex can rely on the answer until
 * releasing it. */
static inline struct plus_thread *
plus_thread_if_single(void)
{
    struct plus_thread *own = plus_thread_own;

    return own == atomic_load_explicit(&plus_thread_single, memory_order_relaxed) ? own : NULL;
}

/* The calling thread's record, made at the first call; never NULL (aborts when out of memory, as the interpreter
 * does when it cannot make a thread state).  The record is freed when the thread ends. */
struct plus_thread *
plus_thread_self(void);

/* Like plus_thread_self(), but returns NULL when out of memory. */
struct plus_thread *
plus_thread_try_self(void);

/* Calls visit(thread, argument) under the registry's lock for the record with this serial, if it exists. */
void
plus_threads_visit_one(uint64_t serial, void (*visit)(struct plus_thread *thread, void *argument),
                       void *argument);

/* The number of threads with a record; 1 means that no thread can be waiting. */
unsigned
plus_threads_count(void);

/* Calls visit(thread, argument) for each record, under the registry's lock. */
void
plus_threads_visit(void (*visit)(struct plus_thread *thread, void *argument), void *argument);

/* Sets the function that a thread calls with its record when it ends, before the record is freed; called without
 * the registry's lock. */
void
plus_threads_on_exit(void (*callback)(struct plus_thread *thread));

/* Makes the thread-specific key, and registers what a fork needs.  Returns 0 or -errno.  Idempotent; called with the
 * GIL held. */
int
plus_threads_init(void);
