/* Captured frames (frame_capture.h) made to go on.
 *
 * All with the GIL held, for whom PLUS_FACT_FRAMES, _OPERANDS, _FRAME_BUILDING and _THREAD_STATE hold.
 */
#ifndef PLUS_INTERP_FRAME_RESTORE_H
#define PLUS_INTERP_FRAME_RESTORE_H

#include "../facts/facts.h"

/* Makes an adopted chain (taken) what the thread executes, on top of what it executes now, and goes on: the call in
 * progress of the innermost frame gives, or raises, what `give` does.  `handled` (taken): the exception that is being
 * handled, or NULL.  Returns what the outermost function returns, or NULL with an exception.  For a chain that does not
 * go on inside of another one's evaluation; the thread handles no exception.
 *
 * No Python code runs before `give` is called.  The recursion limit is not asked: it is for new calls.
 *
 * stack_left: bytes of the C stack, half of which may be used where there is no other memory; if that does not do, the
 * frames are dropped with MemoryError. */
PyObject *
plus_frames_go_on(PyObject *frames, PyObject *handled, PyObject *(*give)(void *), void *arg,
                  size_t stack_left);

#endif
