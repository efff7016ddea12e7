/* Whether an event loop sleeps for the thread, and whether its hub rests; see hub.h.  All with the GIL held. */
#ifndef PLUS_TASKLETS_LOOP_H
#define PLUS_TASKLETS_LOOP_H

#include "../core/task.h"

/* Sees to it that an event loop sleeps for the thread before it waits for descriptors.  0, or -1 with an exception. */
int
plus_loop_ensure(struct plus_scheduler *sched);

/* `change` tasklets more wait for asyncio: the hub does not rest meanwhile. */
void
plus_loop_ask(struct plus_scheduler *sched, int change);

#endif
