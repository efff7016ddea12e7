/* Nothing is runnable: waiting for what may change that, and saying that nothing can.  All with the GIL held. */
#ifndef PLUS_TASKLETS_OUTSIDE_H
#define PLUS_TASKLETS_OUTSIDE_H

#include "../core/task.h"

/* Whether threads that have never used tasklets may still do so: then nothing is a deadlock beside them. */
extern bool plus_foreign_wakers;

/* Whether another thread can make a tasklet of this one's runnable. */
bool
plus_outside_may_help(struct plus_scheduler *sched);

/* As in struct plus_above. */
int
plus_outside_wait(struct plus_scheduler *sched);
PyObject *
plus_outside_deadlock(struct plus_scheduler *sched, const char *text);
void
plus_outside_wake(struct plus_scheduler *sched);

#endif
