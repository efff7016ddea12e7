/* A thread none of whose tasklets can run: how it waits, and how another thread wakes it.
 *
 * It polls a moment before it sleeps, as the locks of the room threads do (threads/waiting/spin.h): whoever answers at once,
 * on another processor, costs no system call then.
 *
 * All with the GIL held.  fork: in the child nobody waits; the thread that forked, in a signal handler, goes on.
 */
#ifndef PLUS_TASKLETS_IDLE_H
#define PLUS_TASKLETS_IDLE_H

#include "../core/task.h"

/* Gives the GIL up until plus_idle_wake(), or until deadline_ns (plus_now_ns()'s clock) has passed: the caller looks
 * which.  `blocked` is set meanwhile; signal handlers run, but may not switch.
 * 0, or -1 with what one of them raised, if no tasklet can run yet; else its exception follows at once. */
int
plus_idle_wait(struct plus_scheduler *sched, uint64_t deadline_ns);

/* Ends the wait of that scheduler's thread, if it waits.  Any thread. */
void
plus_idle_wake(struct plus_scheduler *sched);

#endif
