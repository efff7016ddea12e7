/* Interrupting tasklets: run(timeout) and run_for().
 *
 * Semantics: Stackless Python 3.x, Stackless/module/scheduling.c and stacklessmodule.c.  One run() of a thread, the
 * outermost with a time-out, interrupts; it is the *owner* of the thread's watch.  Inner ones just run.
 *
 * Called with the GIL held.  fork: the child's only thread keeps its watch; those of others end with their threads.
 */
#pragma once

#include "../core/task.h"

struct plus_watch_options {
    long timeout;                                 /* events; 0 or less: none */
    double seconds;                               /* less than 0: none */
    int threadblock, soft, ignore_nesting, total; /* truth values as PyArg_Parse writes them */
};

/* Begins the thread's watch for the running tasklet, which calls run(); there must be none.  Returns 0, or -1 with an
 * exception. */
int
plus_watchdog_begin(struct plus_scheduler *sched, const struct plus_watch_options *options);

/* Reports a call, a resumption or a jump back in the running tasklet of a thread whose watch is counting; or (not
 * `counts`) another place where the tasklet can be interrupted if that is overdue.  Returns when the tasklet goes on:
 * 0, or -1 with the exception that was sent to it. */
int
plus_watchdog_event(struct plus_scheduler *sched, bool counts);

/* Called before each switch while the thread has a watch.  Returns the tasklet that really runs next. */
struct plus_tasklet *
plus_watchdog_switching(struct plus_scheduler *sched, struct plus_tasklet *prev,
                        struct plus_tasklet *next);

/* Called right before each switch while the thread has a watch; no Python code runs after it.  The time may have passed
 * since plus_watchdog_switching(), in the schedule callback for example. */
void
plus_watchdog_entering(struct plus_scheduler *sched, struct plus_tasklet *next);

/* Called when the deadline has passed; the scheduler may be another thread's. */
void
plus_watchdog_expire(struct plus_scheduler *sched);

/* Called if nothing is runnable: makes the owner runnable if its time is over; returns whether it did. */
bool
plus_watchdog_wake_owner(struct plus_scheduler *sched);

/* Ends the watch without its owner: an outer run() has popped it, or the thread ends. */
void
plus_watchdog_end(struct plus_scheduler *sched);
