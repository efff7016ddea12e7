/* Callbacks of the garbage collector that lose no exception. */
#pragma once

#include "../../_base/compat.h"

/* Returns a new callable that calls `callable` with the same arguments and returns None.
 *
 * The collector prints and drops an exception of a callback.  But a signal handler may raise there, whatever the
 * callback does: KeyboardInterrupt, or a time-out.  On the main thread such an exception is raised again as soon as
 * the thread executes Python code after the collection; on other threads it is left to the collector.  The callable is
 * called again in such a case, some times, so that it completes its work.  It may exceed the recursion limit by some
 * calls; its own RecursionError and MemoryError are dropped.  GIL held; NULL with MemoryError. */
PyObject *
plus_guarded(PyObject *callable);
