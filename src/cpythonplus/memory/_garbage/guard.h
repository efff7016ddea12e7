/* Callbacks of the garbage collector that lose no exception. */
#ifndef PLUS_MEMORY_GUARD_H
#define PLUS_MEMORY_GUARD_H

#include "../../_base/compat.h"

/* A new callable that calls `callable` with the same arguments and returns None.
 *
 * The collector prints and drops what a callback raises.  But a signal handler may raise there, whatever the
 * callback does: KeyboardInterrupt, or a time-out.  So what is raised on the main thread is raised again, as soon as
 * the main thread executes Python code behind the collection; on other threads it is left to the collector.  The
 * callable is called again then, some times, so that it gets its work done.  It has some calls more than the
 * recursion limit allows; RecursionError and MemoryError are its own and dropped.  GIL held; NULL with MemoryError. */
PyObject *
plus_guarded(PyObject *callable);

#endif
