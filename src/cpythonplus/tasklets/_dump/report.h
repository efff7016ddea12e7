/* What every tasklet of every thread does, taken in one go: for dumps and for deadlock errors.
 *
 * With the GIL held.  Nothing here switches, and no Python code runs while the data is taken, so it fits
 * together.
 */
#ifndef PLUS_TASKLETS_REPORT_H
#define PLUS_TASKLETS_REPORT_H

#include "../core/task.h"

enum plus_report_threads {
    PLUS_REPORT_OWN,    /* the calling thread */
    PLUS_REPORT_ALL,    /* each: the calling one, then the oldest */
    PLUS_REPORT_OTHERS, /* each but the calling one */
};

/* Gives a list with a tuple for each thread, in the order of reporting.RawThread; NULL with an exception.
 *
 * Of tasklets that differ in their names only (same state, function, stack, and place where the channel was
 * made) the first `most_alike` are in it, and the number of the others.  Takes about a microsecond for each
 * tasklet, during which no other thread runs. */
PyObject *
plus_report_make(enum plus_report_threads which, Py_ssize_t most_alike);

/* Adds the report to an exception as a note; does nothing if that fails.  Runs Python code, during which the
 * scheduler refuses to switch; other threads and signal handlers may run. */
void
plus_report_add_note(struct plus_scheduler *sched, PyObject *exception);

#endif
