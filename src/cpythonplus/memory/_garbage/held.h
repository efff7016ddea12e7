/* The objects that exceptions and caches hold, and their referrers.  The GIL is held; no Python code runs. */
#pragma once

#include "../../_base/compat.h"

/* Returns a new list of those objects of an exact list that are exceptions with a traceback.  NULL with MemoryError. */
PyObject *
plus_exceptions_among(PyObject *objects);

/* Returns a new list of lists: for each item of the exact list `targets`, those of `objects` that refer to it.  The
 * two lists themselves do not count.  NULL with MemoryError. */
PyObject *
plus_referrers_among(PyObject *objects, PyObject *targets);

/* Counts the objects that would be freed with the roots: the roots, and objects whose references all come from them or
 * from each other.  References to the `spares` objects of `spared` are passed over.  Objects in a cycle, which may be
 * freed as well, are not counted.  0, or -1 with MemoryError. */
int
plus_exclusively_held(PyObject *const *roots, Py_ssize_t count, PyObject *const *spared,
                      Py_ssize_t spares, Py_ssize_t *objects, Py_ssize_t *size_bytes);

/* Counts the objects that would be freed if the traceback of an exception were removed: objects whose references all
 * come from it, from its frames, or from each other.  Objects in a cycle, which may be freed as well, are not counted.
 * 0, or -1 with MemoryError. */
int
plus_traceback_holds(PyObject *exception, Py_ssize_t *objects, Py_ssize_t *size_bytes);
