/* Tasklets that wait for long without a C stack. */
#ifndef PLUS_TASKLETS_VACATING_H
#define PLUS_TASKLETS_VACATING_H

#include "../core/task.h"

/* Takes those of the calling thread's tasklets off their C stacks that have been out of the run queue for so long, where
 * that can be done, about so many at most; gives their number. */
size_t
plus_vacate(struct plus_scheduler *sched, uint64_t parked_ns, size_t most);

/* Gives one a C stack, with its frames, where it can be done now: somebody asks for its frame. */
void
plus_seat(struct plus_tasklet *task);

#endif
