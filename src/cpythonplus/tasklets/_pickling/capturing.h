/* Whether a tasklet can be pickled or copied, and its frames; see capturing.c. */
#pragma once

#include "../core/task.h"

/* Registers a C function that returns what its tasklet gets when it goes on, and does nothing else then. */
void
plus_capturing_ends_in(PyCFunction function);

/* True, with `error` set: this interpreter does not support it. */
bool
plus_capturing_refused(PyObject *error);

/* The reason why a tasklet cannot be captured, whatever its frames are; static.  NULL: it may be possible. */
const char *
plus_capturing_why_not(const struct plus_tasklet *task);

/* The frames of a tasklet that has begun: a new tuple (frame_capture.h), or NULL with `error` that names the
 * obstacle. */
PyObject *
plus_capturing_frames(struct plus_tasklet *task, PyObject *error);

/* Whether its frames can be captured now; the objects in them are not examined. */
bool
plus_capturing_is_possible(struct plus_tasklet *task);
