/* Which tasklet of a thread runs next, and the going there.
 *
 * All with the GIL held.  What says "takes" consumes a reference, what says "gives" returns one.
 * Semantics: Stackless Python 3.x, Stackless/module/scheduling.c.
 */
#ifndef PLUS_TASKLETS_SWITCHING_H
#define PLUS_TASKLETS_SWITCHING_H

#include "../core/lists.h"

extern PyObject *plus_error_handler; /* or NULL */
extern PyObject *plus_schedule_hook; /* or NULL */

/* Leaves `prev`, which is running, for `next` (NULL: nothing is runnable).  Returns when prev runs again: 0,
 * and *result is its tempval, or NULL with the exception that was sent to it; or -1 with an exception if
 * nothing was done, and the caller undoes what it has prepared. */
int
plus_schedule(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
              PyObject **result);

/* schedule() and schedule_remove().  Gives the value, or NULL with an exception. */
PyObject *
plus_schedule_current(struct plus_scheduler *sched, PyObject *value, bool remove);

/* True, with RuntimeError, while the running tasklet is in the run queue no more: it is about to wait or to end, and
 * a value that it lets go on its way, or the garbage collector, calls a finaliser. */
bool
plus_refuse_leaving(const struct plus_scheduler *sched);

/* The same, and inside of a callback: nothing may be switched there. */
bool
plus_refuse_in_callback(const struct plus_scheduler *sched);

/* Has the thread keep the GIL while the running tasklet is atomic, and not else. */
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

/* For a tasklet that has a C stack, to be switched to: where it was, or where it begins. */
void
plus_place(struct plus_tasklet *task);

/* The interpreter's end has begun: from here on nothing is switched once it finalises. */
void
plus_switching_end(void);

#endif
