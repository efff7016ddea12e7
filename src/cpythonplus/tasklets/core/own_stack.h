/* Giving a tasklet its C stack: how large it is to be, and whether the address space has room for it. */
#ifndef PLUS_TASKLETS_OWN_STACK_H
#define PLUS_TASKLETS_OWN_STACK_H

#include "task.h"

extern size_t
    plus_new_stack_bytes; /* of schedulers made from now on; 0: plus_default_stack_bytes() */

/* What a thread that is started now gets: threading.stack_size(), else what the C library takes from RLIMIT_STACK. */
size_t
plus_default_stack_bytes(void);

/* Of a scheduler that is being made. */
void
plus_own_stacks_init(struct plus_scheduler *sched);

/* Makes a tasklet able to run.  0, or -1 with MemoryError. */
int
plus_make_ready(struct plus_tasklet *task);

#endif
