/* Which cells of a function that has ended nobody can reach any more but through each other.
 *
 * What hangs on the cells is counted as the garbage collector counts its young objects: an object with
 * more references than its neighbours explain is held from outside, and so is all that it holds.  Only
 * kinds that inner functions are made of are followed; what another kind holds counts as held. */
#ifndef PLUS_MEMORY_ISLANDS_H
#define PLUS_MEMORY_ISLANDS_H

#include "../../_base/compat.h"

/* Empties those of the first `count` cells of the tuple `closure` that lie on a cycle which nothing
 * outside holds.  The caller has one reference to `closure`, which counts as none to its cells, and so
 * do the references that the finished frames in the list `frames` have.  Returns how many were emptied.
 *
 * With the GIL held.  Nothing is changed before all is known; what falls out of the cells is then
 * released, which may run any code.  More than some hundred objects are not looked through: then, and
 * on a build without a GIL, nothing is done. */
Py_ssize_t
plus_islands_close(PyObject *closure, Py_ssize_t count, PyObject *frames);

#endif
