/* The scheduled GIL: what happens at each of the interpreter's four calls on its condition variables.
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
 * the interpreter makes its GIL anew there.
 */
#ifndef PLUS_GIL_SCHED_H
#define PLUS_GIL_SCHED_H

#include "../../_base/histogram.h"
#include "policy.h"

#include <pthread.h>

struct plus_sched_counts {
    uint64_t switches;        /* acquisitions by another thread than the last holder */
    uint64_t forced_switches; /* drops that had been requested */
    uint64_t requests;        /* drop requests made */
    uint64_t
        repeated_requests; /* of these: again, since one of the last interval went unanswered */
    uint64_t immediate_requests;              /* of these: at once, without waiting out any timer */
    uint64_t protected_runs;                  /* runs granted to starved batch threads */
    struct plus_histogram waits[2], holds[2]; /* by enum plus_class, nanoseconds */
};

/* What the scheduler has to ask the interpreter.  Called under `mutex` by threads without the GIL. */
struct plus_interpreter {
    bool (*is_ending)(void);            /* it finalises: waiters must be sent back to it */
    bool (*may_mishear_requests)(void); /* one waiter's request may not reach the holder */
};

/* Starts scheduling, or changes the policy.  The caller holds the GIL and `mutex`. */
void
plus_sched_start(const struct plus_policy *policy, const struct plus_interpreter *interpreter);

/* Stops: every waiter is woken and sent back to the interpreter.  The caller holds `mutex`. */
void
plus_sched_stop(void);

bool
plus_sched_running(void);

/* Only keeps track of the holder and its atomic sections, while libc does the waiting.  The caller
 * holds the GIL and `mutex`. */
void
plus_sched_track(void);

/* The calling thread found the GIL taken and would wait for it until deadline_ns: one switch interval
 * from now.  Called and returns with `mutex` held; sleeps without it, longer or shorter.  Returns
 * ETIMEDOUT when the interpreter shall request a drop, 0 when it shall look again. */
int
plus_sched_wait(pthread_mutex_t *mutex, uint64_t deadline_ns);

/* As after the interpreter's own timed wait ran out: may the holder be asked?  `mutex` held. */
bool
plus_sched_may_ask(void);

/* The calling thread has the GIL now, or gave it up, and no other thread has ever met it: then there
 * is no one to tell, and nothing is timed.  False: the next two have to do it.  `mutex` held.  These call
 * nothing, so they leave errno alone. */
bool
plus_sched_acquired_alone(void);
bool
plus_sched_released_alone(void);

/* The calling thread has the GIL now.  `mutex` held. */
void
plus_sched_acquired(void);

/* The calling thread gave the GIL up.  Called and returns with `mutex` held; may let go of it for a
 * microsecond in between. */
void
plus_sched_released(pthread_mutex_t *mutex);

/* The calling thread was asked, gave the GIL up, and waits until another has taken it.  Called and
 * returns with switch_mutex held; sleeps without it. */
void
plus_sched_await_switch(pthread_mutex_t *switch_mutex);

/* Priority inheritance.  The calling thread is about to sleep for a thing; `owner` is the word that names
 * its owner, by identity, 0 if nobody has it.  Whoever has it is served as the calling thread until it lets
 * go, and so is whoever that one waits for.  What is noted in *lent is for plus_sched_take_back, which ends
 * it.  Without the GIL.  They nest: a signal handler may wait inside a wait. */
struct plus_lent {
    bool lends;                    /* to be taken back */
    uint64_t to;                   /* the owner's identity; 0: nobody */
    const _Atomic uint64_t *outer; /* what the thread waited for before */
};

void
plus_sched_lend(const _Atomic uint64_t *owner, struct plus_lent *lent);
void
plus_sched_take_back(const _Atomic uint64_t *owner, struct plus_lent *lent);

/* What the calling thread has used of the GIL of late, in ns, less what it has rested. */
uint64_t
plus_sched_used_ns(void);

/* Whether somebody lends to the calling thread; and what an owner calls after the word does not name it
 * any more. */
bool
plus_sched_owes(void);
void
plus_sched_let_go(const _Atomic uint64_t *owner);

/* Atomic sections of a thread; they nest.  Called with the GIL held, so that another thread's may be
 * left too.  Entering returns true when the thread must give the GIL up once now, because a request
 * was made before the section began.  Leaving the outermost returns true when somebody was kept
 * waiting: then the GIL must be handed over, or one section right after the other would keep it for
 * ever, since a sleeper needs longer to wake than a thread to enter again. */
bool
plus_sched_atomic_enter(struct plus_thread *self);
bool
plus_sched_atomic_leave(struct plus_thread *self);

/* Handing over: the first with the GIL held; then give it up, and call the second without it, which
 * returns when another thread has taken it, or after 5 ms. */
uint32_t
plus_sched_hand_over_begins(struct plus_thread *self);
void
plus_sched_hand_over_nogil(uint32_t sequence);

/* `mutex` held, so that the numbers belong together. */
void
plus_sched_counts(struct plus_sched_counts *counts);
void
plus_sched_reset_counts(void);

/* The class that `thread` has now.  `mutex` held. */
enum plus_class
plus_sched_class(const struct plus_thread *thread);

/* How many threads ended inside an atomic section.  Any thread, any time. */
uint64_t
plus_sched_abandoned_sections(void);

/* A thread that ends: nothing may point to its record afterwards.  Takes no lock. */
void
plus_sched_forget(struct plus_thread *thread);

void
plus_sched_atfork_child(void);

#endif
