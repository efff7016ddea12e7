/* The wait of a thread that has nothing runnable, and the report that nothing can end it.  Called with the GIL held. */
#pragma once

#include "../core/task.h"

/* set_foreign_wakers(): whether a thread that has never used tasklets may wake one.  While such a thread exists nothing
 * counts as a deadlock. */
extern bool plus_foreign_wakers;

/* Whether another thread can make a tasklet of this scheduler runnable. */
bool
plus_outside_may_help(struct plus_scheduler *sched);

/* The functions of struct plus_above. */
int
plus_outside_wait(struct plus_scheduler *sched);
PyObject *
plus_outside_deadlock(struct plus_scheduler *sched, const char *text);
void
plus_outside_wake(struct plus_scheduler *sched);
