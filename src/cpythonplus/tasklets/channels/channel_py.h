/* The type `channel`, and its functions for objects that begin with a channel. */
#pragma once

#include "channel.h"

extern PyTypeObject plus_channel_type;

/* For tp_traverse and tp_clear of objects that begin with a channel; clearing removes the tasklets from it. */
int
plus_channel_traverse(PyObject *op, visitproc visit, void *arg);
int
plus_channel_clear(PyObject *op);
/* For tp_dealloc, after the object's own part; for made_at; for __reduce__ of objects that cannot be copied. */
void
plus_channel_dealloc(PyObject *op);
PyObject *
plus_channel_made_at(PyObject *op, void *ignored);
PyObject *
plus_refuse_pickling(PyObject *op, PyObject *ignored);
