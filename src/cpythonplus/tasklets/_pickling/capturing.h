/* Which tasklets can be pickled or copied, and their frames; see capturing.c. */
#ifndef PLUS_TASKLETS_CAPTURING_H
#define PLUS_TASKLETS_CAPTURING_H

#include "../core/task.h"

/* A C function that gives what its tasklet gets when it goes on, and does nothing else then. */
void
plus_capturing_ends_in(PyCFunction function);

/* True, with `error` set: not in this interpreter. */
bool
plus_capturing_refused(PyObject *error);

/* Why a tasklet cannot be captured whatever its frames are, static; NULL: it may be. */
const char *
plus_capturing_why_not(const struct plus_tasklet *task);

/* The frames of one that has begun: a new tuple (frame_capture.h), NULL with `error` that names what is in the way. */
PyObject *
plus_capturing_frames(struct plus_tasklet *task, PyObject *error);

/* Whether its frames can be captured now; what lies in them is not asked. */
bool
plus_capturing_is_possible(struct plus_tasklet *task);

#endif
