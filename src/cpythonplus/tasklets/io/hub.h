/* Between the scheduler and the thread's event loop, which sleeps for all of its tasklets.
 *
 * The tasklet that runs asyncio's loop is the *hub*: one of ours, made when a tasklet first waits for a descriptor,
 * or whichever runs a loop of the program's.  The loop calls plus_hub_turn() when the poller's descriptor is
 * ready; there the other tasklets run, until nothing is runnable any more: only then does the loop sleep.  All with the
 * GIL held.
 */
#ifndef PLUS_TASKLETS_HUB_H
#define PLUS_TASKLETS_HUB_H

#include "../core/task.h"

/* Makes those runnable whose time has come or whose descriptors are ready. */
void
plus_look(struct plus_scheduler *sched, uint64_t now_ns);

/* The same, unless it was done just now.  For after a number of switches. */
void
plus_look_soon(struct plus_scheduler *sched);

/* Called by whatever may wait for a descriptor, before it tries: a tasklet that finds its descriptors ready each time lets the
 * others run after some milliseconds.  0, or -1 with an exception that was sent to it. */
int
plus_give_way(struct plus_scheduler *sched);

/* Descriptors were looked at, by whomever: a loop that sleeps or is owed a turn hears of it again. */
void
plus_hub_looked(struct plus_scheduler *sched, uint64_t now_ns);

/* Ends the sleep of the thread's loop, if it sleeps; from any thread. */
void
plus_hub_rouse(struct plus_scheduler *sched);

/* The hub's turn in its loop: runs the other tasklets.  1: call it again soon; 0: when the descriptor is ready;
 * -1: an exception, for the hub.  `ours`: the loop has nothing to do but this. */
int
plus_hub_turn(struct plus_scheduler *sched, bool ours);

/* The loop gave up a turn, or may have: it is to call for one when it next waits. */
void
plus_hub_owe(struct plus_scheduler *sched);

/* In the child of a fork: the loop's descriptors are the parent's, so its hub is left as it is, and another one is
 * begun when needed. */
void
plus_hub_after_fork(struct plus_scheduler *sched);

void
plus_hub_end(struct plus_scheduler *sched);

#endif
