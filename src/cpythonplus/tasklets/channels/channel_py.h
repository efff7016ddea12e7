/* The type `channel`, and what objects that begin with one share with it. */
#ifndef PLUS_TASKLETS_CHANNEL_PY_H
#define PLUS_TASKLETS_CHANNEL_PY_H

#include "channel.h"

extern PyTypeObject plus_channel_type;

/* tp_traverse's and tp_clear's part for objects that begin with a channel; the tasklets in it get out of it. */
int
plus_channel_traverse(PyObject *op, visitproc visit, void *arg);
int
plus_channel_clear(PyObject *op);
/* tp_dealloc's, after what is the object's own; made_at's getter; __reduce__ of what cannot be copied. */
void
plus_channel_dealloc(PyObject *op);
PyObject *
plus_channel_made_at(PyObject *op, void *ignored);
PyObject *
plus_refuse_pickling(PyObject *op, PyObject *ignored);

#endif
