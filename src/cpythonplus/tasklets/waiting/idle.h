/* The wait of a thread that has no runnable tasklet, and how another thread ends it.
 *
 * The thread polls a moment before it sleeps, as the locks of the threads room do (threads/waiting/spin.h): an answer
 * that comes at once, from another processor, then costs no system call.
 *
 * All functions are called with the GIL held.  fork: in the child no thread waits; the thread that forked, in a signal
 * handler, goes on.
 */
#pragma once

#include "../core/task.h"

/* Gives the GIL up until plus_idle_wake(), or until deadline_ns (plus_now_ns()'s clock) has passed; the caller checks
 * which.  `blocked` is set meanwhile; signal handlers run, but may not switch.  Returns 0, or -1 with the exception of
 * a handler. */
int
plus_idle_wait(struct plus_scheduler *sched, uint64_t deadline_ns);

/* Ends the wait of that scheduler's thread, if it waits.  Callable from any thread. */
void
plus_idle_wake(struct plus_scheduler *sched);
