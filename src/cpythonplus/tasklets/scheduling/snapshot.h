/* A tasklet's frames, captured, as what it is to call when it begins: see _interp/saved_frames/frame_capture.h.
 *
 * A tasklet that was loaded from a pickle, or taken off its C stack (vacating.c), has one as its `func`, and no C stack: it
 * counts as one that has not begun. */
#ifndef PLUS_TASKLETS_SNAPSHOT_H
#define PLUS_TASKLETS_SNAPSHOT_H

#include "../../_base/compat.h"

extern PyTypeObject plus_snapshot_type;

static inline bool
plus_is_snapshot(PyObject *op)
{
    return op != NULL && Py_IS_TYPE(op, &plus_snapshot_type);
}

/* Of captured frames and the exception that is handled, or NULL.  NULL with ValueError. */
PyObject *
plus_snapshot_make(PyObject *frames, PyObject *handled);

/* Of a parked tasklet that was taken off its C stack: what its call in progress takes, until that gives something, and
 * `called`, as long as the snapshot lives.  Both are taken. */
void
plus_snapshot_keep(PyObject *snapshot, PyObject *operands, PyObject *called);

/* The outermost frame's, borrowed. */
PyObject *
plus_snapshot_function(PyObject *snapshot);

/* Borrowed; NULL: it has gone on. */
PyObject *
plus_snapshot_frames(PyObject *snapshot);
PyObject *
plus_snapshot_handled(PyObject *snapshot);

struct plus_tasklet;

/* Goes on with them, once: the call in progress gives what `receive` makes, when they are there, of the task and `value`
 * (taken), or raises if it is a bomb.  What the outermost function returns, or NULL with an exception. */
PyObject *
plus_snapshot_run(PyObject *snapshot, PyObject *value,
                  PyObject *(*receive)(struct plus_tasklet *, PyObject *value),
                  struct plus_tasklet *task);

#endif
