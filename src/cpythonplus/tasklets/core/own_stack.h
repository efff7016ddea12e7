/* Giving a tasklet its C stack: its size, and whether the address space has room for it. */
#pragma once

#include "task.h"

extern size_t plus_new_stack_bytes; /* for new schedulers; 0: plus_default_stack_bytes() */

/* The stack size of a thread that is started now: threading.stack_size(), or the C library's from RLIMIT_STACK. */
size_t
plus_default_stack_bytes(void);

/* Called while a scheduler is made. */
void
plus_own_stacks_init(struct plus_scheduler *sched);

/* Makes a tasklet able to run.  Returns 0, or -1 with MemoryError. */
int
plus_make_ready(struct plus_tasklet *task);
