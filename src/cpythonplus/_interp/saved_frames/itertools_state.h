/* The position of an iterator of itertools that has no `__reduce__`: all from 3.14 on, pairwise and batched before.
 *
 * Callers hold the GIL and have proven PLUS_FACT_ITERTOOLS.
 */
#pragma once

#include "../../_base/compat.h"

/* The state, a new tuple: an int whose bits say which fields are NULL, then the fields in order, None for a NULL.  NULL
 * with TypeError for another object or an iterator of unknown state. */
PyObject *
plus_itertools_capture(PyObject *iterator);

/* Put an iterator of the same class into the captured state. 0, or -1 with ValueError and nothing changed if the state
 * does not fit. */
int
plus_itertools_restore(PyObject *iterator, PyObject *captured);
