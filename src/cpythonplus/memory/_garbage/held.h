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

/* ---- islands: the cells of a function that has ended which are reachable only through each other ----
 *
 * References behind the cells are counted as the garbage collector counts those of its young objects.  If an object
 * has more references than its neighbours explain, it is held from outside, and so are all objects that it holds.
 * Only the kinds of objects that inner functions consist of are followed; an object of another kind holds its
 * referents. */

/* Empties those of the first `count` cells of the tuple `closure` that lie on a cycle which nothing outside holds.
 * The caller has one reference to `closure`; the closure's references to its cells do not hold them, nor do those of
 * the finished frames in the list `frames`.  Returns the number of emptied cells.
 *
 * With the GIL held.  Nothing is changed before all is known; then the cells' contents are released, which may run any
 * code.  If there are more than some hundred objects, or on a build without a GIL, nothing is done. */
Py_ssize_t
plus_islands_close(PyObject *closure, Py_ssize_t count, PyObject *frames);
