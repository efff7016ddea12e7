/* Methods that pickle and copy call; see pickle_calls.c. */
#ifndef PLUS_TASKLETS_PICKLE_CALLS_H
#define PLUS_TASKLETS_PICKLE_CALLS_H

#include "../../_base/compat.h"

PyObject *
plus_tasklet_reduce(PyObject *op, PyObject *ignored);
PyObject *
plus_tasklet_set_state(PyObject *op, PyObject *state);
PyObject *
plus_tasklet_copy(PyObject *op, PyObject *ignored);
PyObject *
plus_tasklet_deepcopy(PyObject *op, PyObject *memo);
PyObject *
plus_channel_reduce(PyObject *op, PyObject *ignored);
PyObject *
plus_channel_set_state(PyObject *op, PyObject *state);
PyObject *
plus_bomb_reduce(PyObject *op, PyObject *ignored);

#endif
