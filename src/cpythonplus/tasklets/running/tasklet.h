/* The operations on a tasklet from outside of it.
 *
 * Called with the GIL held.  They return 0, or -1 (NULL) with an exception in Stackless's words.
 */
#pragma once

#include "../core/task.h"

int
plus_tasklet_insert(struct plus_tasklet *task);
int
plus_tasklet_remove(struct plus_tasklet *task);
PyObject *
plus_tasklet_run(struct plus_tasklet *task, bool remove_current);
/* Takes the bomb. */
PyObject *
plus_tasklet_throw(struct plus_tasklet *task, bool pending, PyObject *bomb);
PyObject *
plus_tasklet_kill(struct plus_tasklet *task, bool pending);
/* Makes a tasklet never run or end again: it and its frames stay for ever.  Not for the running one. */
void
plus_tasklet_abandon(struct plus_tasklet *task);
int
plus_tasklet_bind(struct plus_tasklet *task, PyObject *func, PyObject *args, PyObject *kwargs);
/* Takes args (a tuple) and kwargs (a dict or NULL). */
int
plus_tasklet_setup(struct plus_tasklet *task, PyObject *args, PyObject *kwargs, bool insert);
