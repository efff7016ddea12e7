/* A function called on a signal, by a thread that has nothing to do otherwise.
 *
 * The handler of Python's `signal` module runs in the main thread between two instructions: never, while that
 * is stuck in a lock or in C.  Here the handler posts a semaphore, and a thread that waits for it calls the
 * function.  That thread has a Python thread state only while it calls: `threading` does not know it, and it is
 * no "other thread" when a deadlock is looked for.
 *
 * All with the GIL held, in the main interpreter.  fork: the caller pauses before and resumes afterwards, in
 * both processes; a child that is forked without that ignores the signals.
 */
#ifndef PLUS_TASKLETS_DUMP_SIGNAL_H
#define PLUS_TASKLETS_DUMP_SIGNAL_H

#include "../../_base/compat.h"

/* Has call(signum) called on the signal (the last `call` given holds for all).  What it raises goes to
 * sys.unraisablehook.  0, or -1 with OSError, or ValueError for no signal's number. */
int
plus_dump_signal_on(int signum, PyObject *call);

/* Puts the handler back that was there before; unless somebody has put another one since.  Whether it was on. */
bool
plus_dump_signal_off(int signum);

/* Calls for what is pending and ends the thread; signals wait for plus_dump_signal_resume().  Gives the GIL up.  With a
 * call that lasts longer than a second it goes on. */
void
plus_dump_signal_pause(void);

/* Behind a fork; in the child, signals that the parent got are forgotten.  A thread that cannot be started is told to
 * sys.unraisablehook. */
void
plus_dump_signal_resume(bool child);

#endif
