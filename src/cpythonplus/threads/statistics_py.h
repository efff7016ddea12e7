/* statistics() of each type, and acquire_timeout().  Called with the GIL held. */
#pragma once

#include "../_base/compat.h"
#include "waiting/waitq.h"

/* Returns a new WaitStatistics. */
PyObject *
plus_statistics(const struct plus_wait_counts *counts);

/* Returns the WaitStatistics of one queue. */
PyObject *
plus_statistics_of(struct plus_waitq *queue);

/* Adds the counts; the longest wait is the maximum. */
void
plus_counts_add(struct plus_wait_counts *sum, const struct plus_wait_counts *more);

/* Returns a new context manager that tries to acquire `self` in time for a with block. */
PyObject *
plus_acquire_timeout(PyObject *self, PyObject *timeout);
extern const char plus_acquire_timeout_doc[];
extern const char plus_statistics_doc[];
