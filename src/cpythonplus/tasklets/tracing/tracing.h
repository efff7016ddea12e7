/* The trace and profile functions of tasklets that do not run.  Called with the GIL held. */
#pragma once

#include "../core/task.h"

/* Whether new tasklets have tracers. */
extern enum plus_inheritance {
    PLUS_NEVER,           /* as in Stackless */
    PLUS_OF_MAKER,        /* if the code that gives them their arguments has any */
    PLUS_ALSO_OF_THREADS, /* also if only new threads get some */
} plus_inheritance;

/* `profile`: NULL for the trace function, otherwise the profile function. */
PyObject *
plus_tasklet_get_tracer(PyObject *op, void *profile);
int
plus_tasklet_set_tracer(PyObject *op, PyObject *value, void *profile);

/* Gives a tasklet that has its arguments and has not begun the tracers of the running one, or those that new threads
 * get. Errors go to sys.unraisablehook. */
void
plus_tracing_inherit(struct plus_tasklet *task);

/* Takes the tracers from a tasklet that will not run (again). */
void
plus_tracing_drop(struct plus_tasklet *task);
