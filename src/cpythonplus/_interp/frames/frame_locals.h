/* Variables of a running Python function. */
#ifndef PLUS_INTERP_FRAME_LOCALS_H
#define PLUS_INTERP_FRAME_LOCALS_H

#include "../../_base/compat.h"

/* Sets to None the variables of `frame`, its own and those of enclosing functions, that are `op`.
 * Module and class bodies are left alone.  Returns how many.
 *
 * With the GIL held; runs no Python code, for the caller holds a reference to `op`: that one has to
 * last until the frame's operands are gone, since from 3.14 on they may borrow from its variables.
 * So this is for who raises right away. */
int
plus_frame_forget(PyFrameObject *frame, PyObject *op);

#endif
