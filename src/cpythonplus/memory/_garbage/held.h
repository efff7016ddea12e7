/* What exceptions and caches hold, and who holds them.  All with the GIL held; no Python code runs. */
#ifndef PLUS_MEMORY_HELD_H
#define PLUS_MEMORY_HELD_H

#include "../../_base/compat.h"

/* Those of an exact list that are exceptions with a traceback: a new list.  NULL with MemoryError. */
PyObject *
plus_exceptions_among(PyObject *objects);

/* For each of the exact list `targets` a list of those of `objects` that refer to it: a new list of lists.  The
 * lists themselves do not count.  NULL with MemoryError. */
PyObject *
plus_referrers_among(PyObject *objects, PyObject *targets);

/* Counts what would go with the roots: themselves, and objects all of whose references come from them or from each
 * other.  References to the `spares` objects of `spared` are passed over.  Objects that refer to each other in a
 * cycle, and so may go as well, are not counted.  0, or -1 with MemoryError. */
int
plus_exclusively_held(PyObject *const *roots, Py_ssize_t count, PyObject *const *spared,
                      Py_ssize_t spares, Py_ssize_t *objects, Py_ssize_t *size_bytes);

/* Counts what would go if the traceback of an exception were taken off: objects all of whose references come from
 * it, from its frames, or from each other.  Objects that refer to each other in a cycle, and so may go as well, are
 * not counted.  0, or -1 with MemoryError. */
int
plus_traceback_holds(PyObject *exception, Py_ssize_t *objects, Py_ssize_t *size_bytes);

#endif
