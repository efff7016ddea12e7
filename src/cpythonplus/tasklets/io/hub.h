/* The link between the scheduler and the thread's event loop, which sleeps for all tasklets of the thread.
 *
 * The tasklet that runs asyncio's loop is the *hub*: one of ours, made when a tasklet first waits for a descriptor, or
 * a tasklet that runs a loop of the program.  The loop calls plus_hub_turn() when the poller's descriptor is ready;
 * there the other tasklets run, until nothing is runnable any more.  Only then does the loop sleep.  Called with the
 * GIL held.
 */
#pragma once

#include "../core/task.h"

/* Makes tasklets runnable whose time has come or whose descriptor is ready. */
void
plus_look(struct plus_scheduler *sched, uint64_t now_ns);

/* Calls plus_look(), unless that was called just now.  Called every few switches. */
void
plus_look_soon(struct plus_scheduler *sched);

/* Called before a try of any call that may wait for a descriptor: a tasklet that finds its descriptors ready each time
 * lets the others run after a millisecond.  Returns 0, or -1 with an exception that was sent to it. */
int
plus_give_way(struct plus_scheduler *sched);

/* Called after descriptors were checked, by any code: a loop that sleeps or is owed a turn is notified again. */
void
plus_hub_looked(struct plus_scheduler *sched, uint64_t now_ns);

/* Ends the sleep of the thread's loop, if it sleeps; callable from any thread. */
void
plus_hub_rouse(struct plus_scheduler *sched);

/* The hub's turn in its loop: runs the other tasklets.  1: call it again soon; 0: call it when the descriptor is ready;
 * -1: an exception, for the hub.  `ours`: our own loop, which has nothing else to do. */
int
plus_hub_turn(struct plus_scheduler *sched, bool ours);

/* The loop may have lost a turn: it is to call for one when it next waits. */
void
plus_hub_owe(struct plus_scheduler *sched);

/* Called in the child of a fork: the loop's descriptors are the parent's, so its hub is left suspended, and another one
 * is made when needed. */
void
plus_hub_after_fork(struct plus_scheduler *sched);

void
plus_hub_end(struct plus_scheduler *sched);

extern PyMethodDef
    plus_io_methods[]; /* io_py.c: waiting for descriptors, for the Python files of `io` */
