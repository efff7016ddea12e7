/* A tasklet's frames, captured, as what it is to call when it begins: see _interp/frame_capture.h.
 *
 * A tasklet that was loaded from a pickle has one as its `func`, and no C stack: it counts as one that has not begun. */
#ifndef PLUS_TASKLETS_SNAPSHOT_H
#define PLUS_TASKLETS_SNAPSHOT_H

#include "../_base/compat.h"

extern PyTypeObject plus_snapshot_type;

static inline bool
plus_is_snapshot(PyObject *op)
{
    return op != NULL && Py_IS_TYPE(op, &plus_snapshot_type);
}

/* Of captured frames and the exception that is handled, or NULL.  NULL with ValueError. */
PyObject *
plus_snapshot_make(PyObject *frames, PyObject *handled);

/* The outermost frame's, borrowed. */
PyObject *
plus_snapshot_function(PyObject *snapshot);

/* Borrowed; NULL: it has gone on. */
PyObject *
plus_snapshot_frames(PyObject *snapshot);
PyObject *
plus_snapshot_handled(PyObject *snapshot);

/* Goes on with them, once: the call in progress gives `value` (taken), or raises if it is a bomb.  What the outermost
 * function returns, or NULL with an exception. */
PyObject *
plus_snapshot_run(PyObject *snapshot, PyObject *value);

#endif
