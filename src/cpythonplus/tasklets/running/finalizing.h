/* The end of tasklets that nobody can reach: TaskletExit is raised in them, so that their `finally` clauses run.
 *
 * CPython calls a finalizer once, and the collector then clears what is garbage still.  A tasklet may need more: its
 * `finally` may wait, for what only garbage refers to, and it is found again later.  So one that has not ended is kept
 * until the collection is over, and is finalized like a new one when it is found again.
 */
#pragma once

#include "../core/task.h"

/* Called by the interpreter as tp_finalize, when the last reference is gone or only garbage refers to it. */
void
plus_tasklet_finalize(PyObject *op);

/* For tp_dealloc.  Returns whether the tasklet must not be freed: somebody has a reference now, or it could not be
 * ended. */
bool
plus_tasklet_outlives(PyObject *op);

/* Returns 0, or -1 with an exception. */
int
plus_finalizing_prepare(void);
