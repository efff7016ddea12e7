/* run() and run_for().  Called with the GIL held. */
#pragma once

#include "../watchdog/watchdog.h"

/* Returns the interrupted tasklet or None; NULL with an exception. */
PyObject *
plus_run(struct plus_scheduler *sched, const struct plus_watch_options *options);
