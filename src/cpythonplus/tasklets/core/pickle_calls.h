/* Methods that pickle and copy call; see pickle_calls.c. */
#pragma once

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
