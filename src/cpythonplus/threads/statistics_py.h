/* statistics() of each type, and acquire_timeout().  With the GIL held. */
#ifndef PLUS_THREADS_STATISTICS_PY_H
#define PLUS_THREADS_STATISTICS_PY_H

#include "../_base/compat.h"
#include "waiting/waitq.h"

/* A new WaitStatistics. */
PyObject *
plus_statistics(const struct plus_wait_counts *counts);

/* The same of one queue. */
PyObject *
plus_statistics_of(struct plus_waitq *queue);

/* Adds up; the longest is the maximum. */
void
plus_counts_add(struct plus_wait_counts *sum, const struct plus_wait_counts *more);

/* A new context manager that acquires `self` for a with block, if that succeeds in time. */
PyObject *
plus_acquire_timeout(PyObject *self, PyObject *timeout);
extern const char plus_acquire_timeout_doc[];
extern const char plus_statistics_doc[];

#endif
