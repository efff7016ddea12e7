/* What a tasklet has of its own and others may look at and set: its context, its trace and profile functions.
 *
 * All with the GIL held.  The methods and attributes of the type; prototypes as its tables want them.
 */
#ifndef PLUS_TASKLETS_OWN_STATE_H
#define PLUS_TASKLETS_OWN_STATE_H

#include "scheduler.h"

/* ---- context (context.c) ---- */

/* id() of its context, or None when it has none yet. */
PyObject *
plus_tasklet_context_id(PyObject *op, void *ignored);
PyObject *
plus_tasklet_set_context(PyObject *op, PyObject *context);
PyObject *
plus_tasklet_context_run(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames);

/* ---- trace and profile functions (tracing.c) ---- */

/* Whether new tasklets have tracers. */
extern enum plus_inheritance {
    PLUS_NEVER,           /* as in Stackless */
    PLUS_OF_MAKER,        /* if who gives them their arguments has any */
    PLUS_ALSO_OF_THREADS, /* also if only new threads get some */
} plus_inheritance;

/* `profile`: NULL for the trace function, else the profile function. */
PyObject *
plus_tasklet_get_tracer(PyObject *op, void *profile);
int
plus_tasklet_set_tracer(PyObject *op, PyObject *value, void *profile);

/* Gives one that has its arguments and has not begun the tracers of the running one, or those that new threads
 * get.  What cannot be given is reported to sys.unraisablehook. */
void
plus_tracing_inherit(struct plus_tasklet *task);

/* Takes them away from one that will not run (again). */
void
plus_tracing_drop(struct plus_tasklet *task);

#endif
