/* Tasklets that wait for long without a C stack. */
#pragma once

#include "../core/task.h"

/* Takes tasklets of the calling thread off their C stacks, if they have been out of the run queue for parked_ns and it
 * can be done; about `most` of them.  Returns their number. */
size_t
plus_vacate(struct plus_scheduler *sched, uint64_t parked_ns, size_t most);

/* Gives a vacated tasklet a C stack, with its frames, if that can be done now: its frame object was asked for. */
void
plus_seat(struct plus_tasklet *task);
