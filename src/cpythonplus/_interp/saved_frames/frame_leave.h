/* Frames that an exception leaves without executing any more of them: no `except`, no `finally`, no end of a `with`.
 *
 * Callers hold the GIL and have proven PLUS_FACT_FRAMES, _OPERANDS and _FRAME_BUILDING.
 */
#pragma once

#include "../frames/frames.h"

/* Prepare plus_frames_leave(); may run Python code, which does not change the chain.  False, without an exception, if
 * the chain cannot be left so. */
bool
plus_frames_can_leave(const struct plus_frames *frames);

/* Leave a chain for which plus_frames_can_leave() was true: its thread must return to it with an exception at once,
 * which then leaves all its frames.  They are in no traceback and drop their references. */
void
plus_frames_leave(const struct plus_frames *frames);

/* The operands of the call in progress of the innermost frame, a new tuple; NULL without an exception if they are
 * unknown. */
PyObject *
plus_frames_call_operands(const struct plus_frames *frames);

/* True if this interpreter leaves frames as described above; the first call tests it, once per process. */
bool
plus_frames_are_left(void);
