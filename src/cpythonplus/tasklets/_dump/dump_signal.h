/* A function that is called on a signal, by a thread of its own.
 *
 * A handler of Python's `signal` module runs in the main thread between two instructions: never, while that thread is
 * stuck in a lock or in C.  Here the handler posts a semaphore, and a thread that waits for it calls the function.
 * That thread has a Python thread state only while it calls: `threading` does not know it, and the search for
 * deadlocks does not count it as another thread.
 *
 * Called with the GIL held, in the main interpreter.  fork: the caller pauses before and resumes afterwards, in both
 * processes; a child that is forked without that ignores the signals.
 */
#pragma once

#include "../../_base/compat.h"

/* From now on call(signum) is called on the signal; the last `call` given is used for all signals.  Its exceptions go
 * to sys.unraisablehook.  Returns 0, or -1 with OSError, or with ValueError for an invalid number. */
int
plus_dump_signal_on(int signum, PyObject *call);

/* Restores the former handler, unless other code has installed another one since.  Returns whether the signal was
 * on. */
bool
plus_dump_signal_off(int signum);

/* Calls for pending signals and ends the thread; later signals wait for plus_dump_signal_resume().  Gives the GIL up.
 * If a call lasts longer than a second, the thread goes on. */
void
plus_dump_signal_pause(void);

/* Called after a fork; in the child, signals that the parent got are forgotten.  If the thread cannot be started, that
 * is reported to sys.unraisablehook. */
void
plus_dump_signal_resume(bool child);
