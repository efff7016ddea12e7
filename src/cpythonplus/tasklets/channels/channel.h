/* Channels: the waiting tasklets, and the meeting of a sender with a receiver.  Called with the GIL held. */
#pragma once

#include "../core/lists.h"

extern PyObject *plus_channel_hook; /* the channel callback, or NULL */

/* send() and receive() (direction 1 and -1).  Takes the value; gives the received value or None, or NULL with an
 * exception. */
PyObject *
plus_channel_action(struct plus_channel *channel, PyObject *value, int direction);

/* ---- the type, and functions for objects that begin with a channel (channel_py.c) --------------- */

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
