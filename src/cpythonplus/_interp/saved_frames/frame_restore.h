/* Captured frames (frame_capture.h) made to go on.
 *
 * Callers hold the GIL and have proven PLUS_FACT_FRAMES, _OPERANDS, _FRAME_BUILDING and _THREAD_STATE.
 */
#pragma once

#include "../facts/facts.h"

/* Put an adopted chain (taken) on top of the frames that the thread executes, and go on: the innermost frame's call in
 * progress returns or raises what `give` does. `handled` (taken): the exception that is being handled, or NULL.
 * Returns the outermost function's result, or NULL with an exception.  The thread must handle no exception, and the
 * chain must not go on inside the evaluation of another one.
 *
 * No Python code runs before `give` is called.  The recursion limit does not apply: it is for new calls.
 *
 * stack_left: free bytes of the C stack, half of which may be used if malloc fails; if that is too little, the frames
 * are dropped with MemoryError. */
PyObject *
plus_frames_go_on(PyObject *frames, PyObject *handled, PyObject *(*give)(void *), void *arg,
                  size_t stack_left);
