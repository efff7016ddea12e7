/* Which tasklet of a thread runs next, and the switch to it.
 *
 * All functions are called with the GIL held.  "Takes" means that a function consumes a reference, "gives" that it
 * returns one.  Semantics: Stackless Python 3.x, Stackless/module/scheduling.c.
 */
#pragma once

#include "../core/lists.h"

extern PyObject *plus_error_handler; /* or NULL */
extern PyObject *plus_schedule_hook; /* or NULL */

/* Leaves `prev`, which is running, for `next` (NULL: nothing is runnable).  Returns when prev runs again: 0, with
 * *result its tempval, or NULL with the exception that was sent to it.  Returns -1 with an exception if nothing was
 * done; then the caller undoes its preparations. */
int
plus_schedule(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
              PyObject **result);

/* schedule() and schedule_remove().  Gives the value, or NULL with an exception. */
PyObject *
plus_schedule_current(struct plus_scheduler *sched, PyObject *value, bool remove);

/* True, with RuntimeError, if the running tasklet has left the run queue: it is about to wait or to end, and a
 * finaliser runs, because of a value that it dropped or of the garbage collector. */
bool
plus_refuse_leaving(const struct plus_scheduler *sched);

/* Like plus_refuse_leaving(), and also true inside of a callback, where switching is refused. */
bool
plus_refuse_in_callback(const struct plus_scheduler *sched);

/* Makes the thread keep the GIL while the running tasklet is atomic, and only then. */
void
plus_scheduler_hold_gil(struct plus_scheduler *sched, bool hold);

static inline void
plus_follow_atomic(struct plus_scheduler *sched)
{
    bool hold = sched->running->atomic && sched->running != sched->loop.own_hub;

    if (hold != sched->turn.holds_gil) {
        plus_scheduler_hold_gil(sched, hold);
    }
}

/* Prepares a tasklet that has a C stack for a switch to it: its saved place, or its beginning. */
void
plus_place(struct plus_tasklet *task);

/* Called when the interpreter begins to end: once it finalises, every switch is refused. */
void
plus_switching_end(void);
