/* The type `tasklet`. */
#ifndef PLUS_TASKLETS_TASKLET_PY_H
#define PLUS_TASKLETS_TASKLET_PY_H

#include "../core/task.h"

extern PyTypeObject plus_tasklet_type;

/* Makes a main tasklet for a new scheduler; NULL with an exception. */
struct plus_tasklet *
plus_tasklet_make_main(struct plus_scheduler *sched);

#endif
