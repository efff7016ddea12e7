/* The type `tasklet`. */
#ifndef PLUS_TASKLETS_TASKLET_PY_H
#define PLUS_TASKLETS_TASKLET_PY_H

#include "../core/task.h"

extern PyTypeObject plus_tasklet_type;

/* A main tasklet for the scheduler that is being made; NULL with an exception. */
struct plus_tasklet *
plus_tasklet_make_main(struct plus_scheduler *sched);

#endif
