/* Deadlines of run_for(): a thread of the process sleeps until the earliest.
 *
 * It has a thread state only while it tells a scheduler that its time is over: a sleeping Python thread would look like
 * one that may wake a blocked tasklet, and no deadlock would be found beside it.
 *
 * Called with the GIL held.
 */
#pragma once

#include "../core/task.h"

/* Starts the thread if there is none.  Returns 0, or -1 with RuntimeError: it cannot be started, or the interpreter
 * ends. */
int
plus_deadline_prepare(void);

/* Sets the deadline: plus_watchdog_expire(sched) is called once `seconds` have passed. */
void
plus_deadline_set(struct plus_scheduler *sched, double seconds);

/* Cancels the deadline, if there is one. */
void
plus_deadline_cancel(struct plus_scheduler *sched);

/* Whether `tstate` is that of the deadline thread, which wakes no tasklet. */
bool
plus_deadline_is_ours(const PyThreadState *tstate);

/* Called around a fork.  Before: ends the thread, and releases the GIL meanwhile.  Afterwards, in parent and child:
 * starts it again if there is a deadline. */
void
plus_deadline_before_fork(void);
void
plus_deadline_after_fork(void);
/* Starts the thread again in the parent of os.fork; does nothing if no deadline is left. */
void
plus_deadline_after_fork_parent(void);

/* Called before the interpreter ends: from then on the thread does not use it. */
void
plus_deadline_stop(void);
