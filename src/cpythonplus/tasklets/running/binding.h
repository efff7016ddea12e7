/* The types and methods of this folder, for tasklets_py.c, and run().  Called with the GIL held. */
#pragma once

#include "../watchdog/watchdog.h"

extern PyTypeObject plus_task_local_type; /* local_py.c */
extern PyMethodDef
    plus_timing_methods[]; /* timing_py.c: sleeping, time-outs and coroutines, for `io` */
extern PyMethodDef plus_pickling_methods[]; /* pickling_py.c: for _pickling/reducing.py */

/* Called when the module's functions are added and its types are ready. */
int
plus_pickling_prepare(PyObject *module);

/* run() and run_for() (run.c).  Returns the interrupted tasklet or None; NULL with an exception. */
PyObject *
plus_run(struct plus_scheduler *sched, const struct plus_watch_options *options);
