/* What cpythonplus.tasklets._pickling is built on. */
#ifndef PLUS_TASKLETS_PICKLING_PY_H
#define PLUS_TASKLETS_PICKLING_PY_H

#include "../_base/compat.h"

extern PyMethodDef plus_pickling_methods[];

/* With the module's functions added, and its types ready. */
int
plus_pickling_prepare(PyObject *module);

/* Whether a tasklet's frames can be captured now; what lies in them is not asked. */
bool
plus_tasklet_is_restorable(PyObject *op);

/* Methods of tasklets, channels and bombs that pickle and copy call. */
PyObject *
plus_tasklet_reduce(PyObject *op, PyObject *ignored);
PyObject *
plus_tasklet_set_state(PyObject *op, PyObject *state);
PyObject *
plus_tasklet_copy(PyObject *op, PyObject *ignored);
PyObject *
plus_channel_reduce(PyObject *op, PyObject *ignored);
PyObject *
plus_channel_set_state(PyObject *op, PyObject *state);
PyObject *
plus_bomb_reduce(PyObject *op, PyObject *ignored);

#endif
