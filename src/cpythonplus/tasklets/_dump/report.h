/* The state of every tasklet of every thread, taken in one go: for dumps and for deadlock errors.
 *
 * Called with the GIL held.  Nothing here switches, and no Python code runs while the data is taken, so the data is
 * consistent.
 */
#pragma once

#include "../core/task.h"

enum plus_report_threads {
    PLUS_REPORT_OWN,    /* the calling thread */
    PLUS_REPORT_ALL,    /* all threads: the calling one first, then from the oldest on */
    PLUS_REPORT_OTHERS, /* all except the calling one */
};

/* Returns a list with a tuple for each thread, in the order of reporting.RawThread; NULL with an exception.
 *
 * Some tasklets differ only in their names: they have the same state, function, stack, and place where the channel was
 * made.  The list has the first `most_alike` of them, and the number of the others.  Takes about a microsecond for
 * each tasklet; no other thread runs meanwhile. */
PyObject *
plus_report_make(enum plus_report_threads which, Py_ssize_t most_alike);

/* Adds the report to an exception as a note; does nothing if that fails.  Runs Python code with switches refused; other
 * threads and signal handlers may run. */
void
plus_report_add_note(struct plus_scheduler *sched, PyObject *exception);
