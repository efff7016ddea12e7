/* Cold tasklets: parked for long, they keep only the used part of their stacks.  Called with the GIL held. */
#pragma once

#include "task.h"

/* Makes those of a thread's tasklets cold that have been out of the run queue for parked_ns; returns their number. */
size_t
plus_scheduler_trim(struct plus_scheduler *sched, uint64_t parked_ns);

/* Whether a parked tasklet has been out of the run queue for parked_ns. */
static inline bool
plus_waits_long(const struct plus_tasklet *task, uint64_t now_ns, uint64_t parked_ns)
{
    return !plus_is_runnable(task) && now_ns - task->parked_ns >= parked_ns;
}

/* Gives a cold tasklet its stack back, with the content at its old addresses; does nothing for others. */
void
plus_tasklet_warm(struct plus_tasklet *task);
