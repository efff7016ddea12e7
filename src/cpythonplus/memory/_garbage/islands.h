/* Finds the cells of a function that has ended which are reachable only through each other.
 *
 * References behind the cells are counted as the garbage collector counts those of its young objects.  If an object
 * has more references than its neighbours explain, it is held from outside, and so are all objects that it holds.
 * Only the kinds of objects that inner functions consist of are followed; an object of another kind holds its
 * referents. */
#pragma once

#include "../../_base/compat.h"

/* Empties those of the first `count` cells of the tuple `closure` that lie on a cycle which nothing outside holds.
 * The caller has one reference to `closure`; the closure's references to its cells do not hold them, nor do those of
 * the finished frames in the list `frames`.  Returns the number of emptied cells.
 *
 * With the GIL held.  Nothing is changed before all is known; then the cells' contents are released, which may run any
 * code.  If there are more than some hundred objects, or on a build without a GIL, nothing is done. */
Py_ssize_t
plus_islands_close(PyObject *closure, Py_ssize_t count, PyObject *frames);
