/* The scheduled GIL: one function for each of the interpreter's four calls on its condition variables.
 *
 * The interpreter (every version from 3.11 to 3.15, POSIX) does, in pseudo-code:
 *
 *     take:  lock(mutex)
 *            while locked:
 *                if timedwait(cond, mutex, interval) timed out and nobody switched meanwhile:
 *                    request that the holder drops it                           -> plus_sched_wait
 *            locked = 1;  signal(switch_cond)                                   -> plus_sched_acquired
 *            the request, if any, is withdrawn;  unlock(mutex)
 *     drop:  lock(mutex); locked = 0; signal(cond); unlock(mutex)               -> plus_sched_released
 *            if a drop was requested and nobody took it yet:
 *                wait(switch_cond, switch_mutex)                                -> plus_sched_await_switch
 *
 * Locks: `mutex` above (the GIL's own) guards every field of the scheduler except the atomics
 * named as such.  switch_mutex is the interpreter's; it is taken inside `mutex` by the interpreter and
 * never by us.
 *
 * fork: plus_sched_atfork_child empties the queue: only the calling thread lives in the child, and
 * the interpreter makes a new GIL there.
 */
#pragma once

#include "../../_base/histogram.h"
#include "policy.h"

#include <pthread.h>

struct plus_sched_counts {
    uint64_t switches;           /* acquisitions by another thread than the last holder */
    uint64_t forced_switches;    /* drops that had been requested */
    uint64_t requests;           /* drop requests made */
    uint64_t repeated_requests;  /* requests made again after an unanswered interval */
    uint64_t immediate_requests; /* requests made at once, without waiting out any timer */
    uint64_t protected_runs;     /* runs granted to starved batch threads */
    struct plus_histogram waits[2], holds[2]; /* by enum plus_class, nanoseconds */
};

/* Questions to the interpreter.  Called under `mutex` by threads without the GIL. */
struct plus_interpreter {
    bool (*is_ending)(void); /* the interpreter finalises: waiters must be sent back to it */
    bool (*may_mishear_requests)(void); /* one waiter's request may not reach the holder */
};

/* A hold of the GIL that lasted for too long while other threads waited. */
struct plus_stall {
    uint64_t hold_ns, waited_ns; /* waited_ns: by all other threads together, during the hold */
    uint32_t waiters;            /* how many wait when it ends */
    bool atomic;                 /* in an atomic section */
    bool sampled;                /* the watch's `sample` was called during the hold */
};

/* The functions that stalls are told to; UINT64_MAX: never.  Called with `mutex` held:
 *
 *   ended     a hold has ended for which another thread has waited for limit_ns; in the holder's thread, which has just
 *             given the GIL up.  No other thread can take it before the return.
 *   sample    a hold has lasted for sample_ns and goes on, outside of an atomic section; in a waiter, without the GIL,
 *             once a hold.  Never more than limit_ns.
 *   lasting   a hold has lasted for lasting_ns and goes on; likewise.  Writes a line about the holder, and returns its
 *             length. */
struct plus_stall_watch {
    uint64_t limit_ns, sample_ns, lasting_ns;
    void (*ended)(const struct plus_thread *holder, const struct plus_stall *stall);
    void (*sample)(const struct plus_thread *holder);
    size_t (*lasting)(const struct plus_thread *holder, uint64_t hold_ns, char *text, size_t size);
};

/* Begins or ends to tell stalls.  The caller holds `mutex`. */
void
plus_sched_watch_stalls(const struct plus_stall_watch *watch);

/* The watch's limit_ns, which holds for locks, too.  Called by any thread. */
uint64_t
plus_sched_stall_ns(void);

/* Told of each timed hold when it ends, and of each wait.  Called by the thread itself under `mutex`; it has the GIL or
 * is just giving it up, so no other thread executes Python code meanwhile.  `mark` is a word for the observer,
 * from the end of a hold to the end of the wait behind it: the thread's stack is the same meanwhile; else it is 0.  The
 * observer must not run Python code, release the mutex, or change errno. */
enum plus_observed { PLUS_OBSERVED_HOLD, PLUS_OBSERVED_WAIT };
typedef void (*plus_observer)(enum plus_observed what, uint64_t ns, uint32_t *mark);

/* NULL ends it.  The caller holds the GIL and `mutex`. */
void
plus_sched_observe(plus_observer observer);

/* Starts scheduling, or changes the policy.  The caller holds the GIL and `mutex`. */
void
plus_sched_start(const struct plus_policy *policy, const struct plus_interpreter *interpreter);

/* Stops: every waiter is woken and sent back to the interpreter.  The caller holds `mutex`.  is_tracked: who has the GIL
 * is still told. */
void
plus_sched_stop(bool is_tracked);

bool
plus_sched_running(void);

/* Only tracks the holder and its atomic sections, while libc does the waiting.  The caller holds the GIL and
 * `mutex`. */
void
plus_sched_track(void);

/* The calling thread found the GIL taken and would wait for it until deadline_ns: one switch interval from now.  Called
 * and returns with `mutex` held; sleeps without it, longer or shorter.  Returns ETIMEDOUT if the interpreter must
 * request a drop, 0 if it must check the GIL again. */
int
plus_sched_wait(pthread_mutex_t *mutex, uint64_t deadline_ns);

/* Returns whether the holder may be asked, after the interpreter's own timed wait ran out.  `mutex` held. */
bool
plus_sched_may_ask(void);

/* Used when the calling thread has taken the GIL, or given it up, and has never met another thread: no waiter has to be
 * woken and nothing is timed.  False: the caller has to use plus_sched_acquired or _released.  `mutex` held.  Both call
 * no library function, so errno is unchanged. */
bool
plus_sched_acquired_alone(void);
bool
plus_sched_released_alone(void);

/* The calling thread has the GIL now.  `mutex` held. */
void
plus_sched_acquired(void);

/* The calling thread gave the GIL up.  Called and returns with `mutex` held; may release it for a microsecond in
 * between. */
void
plus_sched_released(pthread_mutex_t *mutex);

/* The calling thread was asked, gave the GIL up, and waits until another has taken it.  Called and
 * returns with switch_mutex held; sleeps without it. */
void
plus_sched_await_switch(pthread_mutex_t *switch_mutex);

/* Priority inheritance.  The calling thread is about to sleep for a thing; `owner` is the word that holds the
 * identity of its owner, 0 if it has none.  The owner is served at the calling thread's level until it lets go, and
 * so is the thread that the owner itself waits for.  plus_sched_take_back ends the loan, by what is noted in *lent.
 * Called without the GIL.  Loans nest: a signal handler may wait inside a wait. */
struct plus_lent {
    bool lends;                    /* to be taken back */
    uint64_t to;                   /* the owner's identity; 0: none */
    const _Atomic uint64_t *outer; /* what the thread waited for before */
};

void
plus_sched_lend(const _Atomic uint64_t *owner, struct plus_lent *lent);
void
plus_sched_take_back(const _Atomic uint64_t *owner, struct plus_lent *lent);

/* The calling thread's account: its recent use of the GIL less its rests, in ns. */
uint64_t
plus_sched_used_ns(void);

/* plus_sched_owes: whether another thread lends to the calling thread.  plus_sched_let_go: an owner calls it once
 * the owner word no longer names it. */
bool
plus_sched_owes(void);
void
plus_sched_let_go(const _Atomic uint64_t *owner);

/* Atomic sections of a thread; they nest.  Called with the GIL held, so one thread may leave another's section.
 * Entering returns true if the thread must give the GIL up once now, because a request was made before the
 * section began.  Leaving the outermost section returns true if a thread was kept waiting; then the caller must
 * hand the GIL over.  Otherwise one section right after the other would keep it for ever, since a sleeper needs
 * longer to wake than a thread to enter again. */
bool
plus_sched_atomic_enter(struct plus_thread *self);
bool
plus_sched_atomic_leave(struct plus_thread *self);

/* Handing over: call plus_sched_hand_over_begins with the GIL held, give the GIL up, and call
 * plus_sched_hand_over_nogil without it.  The latter returns when another thread has taken the GIL, or after 5 ms. */
uint32_t
plus_sched_hand_over_begins(struct plus_thread *self);
void
plus_sched_hand_over_nogil(uint32_t sequence);

/* `mutex` held, so that the numbers belong together. */
void
plus_sched_counts(struct plus_sched_counts *counts);
void
plus_sched_reset_counts(void);

/* The state of `thread` now.  `mutex` held.  A thread that only gave way to the present holder counts as the one that
 * holds the GIL: the holder is the thread that asks this. */
struct plus_present {
    unsigned level;
    bool holds;
    uint64_t since_ns; /* for how long it awaits the GIL; 0: it does not, or holds it */
    uint64_t
        waits_for; /* identity of the owner of the lock that it waits for; 0: none, or no owner */
};

struct plus_present
plus_sched_present(const struct plus_thread *thread, uint64_t now);

/* The present class of `thread`.  `mutex` held. */
enum plus_class
plus_sched_class(const struct plus_thread *thread);

/* How many threads ended inside an atomic section.  Callable from any thread at any time. */
uint64_t
plus_sched_abandoned_sections(void);

/* Removes all pointers to the record of a thread that ends.  Takes no lock. */
void
plus_sched_forget(struct plus_thread *thread);

void
plus_sched_atfork_child(void);
