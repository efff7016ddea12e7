/* Frames that an exception leaves, and nothing of them is executed any more: no `except`, no `finally`, no end of a `with`.
 *
 * All with the GIL held, for whom PLUS_FACT_FRAMES, _OPERANDS and _FRAME_BUILDING hold.
 */
#ifndef PLUS_INTERP_FRAME_LEAVE_H
#define PLUS_INTERP_FRAME_LEAVE_H

#include "../frames/frames.h"

/* Makes what the other one needs; may run Python code, which does not change the chain.  False, without an exception: it
 * cannot be left so. */
bool
plus_frames_can_leave(const struct plus_frames *frames);

/* Of a chain that can: who goes on in it has to come back with an exception at once, and that leaves all of them.  They are
 * in no traceback, and let go of what they refer to. */
void
plus_frames_leave(const struct plus_frames *frames);

/* What the call takes in which the innermost frame stands: a new tuple; NULL without an exception: that is not known. */
PyObject *
plus_frames_call_operands(const struct plus_frames *frames);

/* Whether frames are left as this says: tried out when it is asked first, for this process. */
bool
plus_frames_are_left(void);

#endif
