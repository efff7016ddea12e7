/* A tasklet's captured frames, in the form of a function to call when it begins: see
 * _interp/saved_frames/frame_capture.h.
 *
 * A tasklet that was loaded from a pickle, or taken off its C stack (vacating.c), has a snapshot as its `func`, and no
 * C stack: it counts as one that has not begun. */
#pragma once

#include "../../_base/compat.h"

extern PyTypeObject plus_snapshot_type;

static inline bool
plus_is_snapshot(PyObject *op)
{
    return op != NULL && Py_IS_TYPE(op, &plus_snapshot_type);
}

/* Makes a snapshot of captured frames and of the exception that is being handled, or NULL.  Returns NULL with
 * ValueError. */
PyObject *
plus_snapshot_make(PyObject *frames, PyObject *handled);

/* For a parked tasklet that was taken off its C stack: keeps `operands`, the operands of its call in progress, until
 * that call returns, and `called` as long as the snapshot lives.  Takes both. */
void
plus_snapshot_keep(PyObject *snapshot, PyObject *operands, PyObject *called);

/* The function of the outermost frame, borrowed. */
PyObject *
plus_snapshot_function(PyObject *snapshot);

/* The frames and the handled exception, borrowed; NULL: the frames have gone on. */
PyObject *
plus_snapshot_frames(PyObject *snapshot);
PyObject *
plus_snapshot_handled(PyObject *snapshot);

struct plus_tasklet;

/* Runs the frames, once.  When they are rebuilt, the call in progress returns receive(task, value) (takes `value`), or
 * raises it if it is a bomb.  Returns the result of the outermost function, or NULL with an exception. */
PyObject *
plus_snapshot_run(PyObject *snapshot, PyObject *value,
                  PyObject *(*receive)(struct plus_tasklet *, PyObject *value),
                  struct plus_tasklet *task);
