/* Dead lines of run_for(): a thread of the process that sleeps until the earliest.
 *
 * It has a thread state only while it tells a scheduler that its time is over: a thread of Python's that sleeps would
 * look like one that may wake a blocked tasklet, and no deadlock would be found beside it.
 *
 * All with the GIL held.
 */
#ifndef PLUS_TASKLETS_DEADLINE_H
#define PLUS_TASKLETS_DEADLINE_H

#include "../core/task.h"

/* Starts the thread if there is none.  0, or -1 with RuntimeError: it cannot be started, or the interpreter ends. */
int
plus_deadline_prepare(void);

/* plus_watchdog_expire(sched) once `seconds` have passed. */
void
plus_deadline_set(struct plus_scheduler *sched, double seconds);

/* No more.  Does nothing if there is none. */
void
plus_deadline_cancel(struct plus_scheduler *sched);

/* Whether a thread state is that of the thread, which wakes nobody. */
bool
plus_deadline_is_ours(const PyThreadState *tstate);

/* Around a fork.  Before: ends the thread, and lets go of the GIL meanwhile.  Afterwards, in parent and child: starts it
 * anew if there is a dead line. */
void
plus_deadline_before_fork(void);
void
plus_deadline_after_fork(void);
/* The same in the parent, behind os.fork; nothing is done where no dead line is left. */
void
plus_deadline_after_fork_parent(void);

/* Before the interpreter ends: from then on the thread stays away from it. */
void
plus_deadline_stop(void);

#endif
