/* Starting the event loop that sleeps for a thread, and the rest of its hub; see hub.h.  Called with the GIL held. */
#pragma once

#include "../core/task.h"

/* Ensures that an event loop sleeps for the thread before it waits for descriptors.  Returns 0, or -1 with an
 * exception. */
int
plus_loop_ensure(struct plus_scheduler *sched);

/* Adds `change` to the number of tasklets that wait for asyncio; the hub does not rest while it is above 0. */
void
plus_loop_ask(struct plus_scheduler *sched, int change);
