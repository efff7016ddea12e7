/* The type `tasklet`. */
#pragma once

#include "../core/task.h"

extern PyTypeObject plus_tasklet_type;

/* Makes a main tasklet for a new scheduler; NULL with an exception. */
struct plus_tasklet *
plus_tasklet_make_main(struct plus_scheduler *sched);
