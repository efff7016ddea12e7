/* The variables of a frame, read and set to None.  GIL held; no Python code runs. */
#pragma once

#include "../../_base/compat.h"

/* The bound local and free variables of `frame`: a new dict with str keys, NULL with an exception.  A cell is replaced
 * by its contents.  The frame is not changed. */
PyObject *
plus_frame_variables(PyObject *frame);

/* Set to None each variable of `frame`, its own and those of enclosing functions, that is `op`.  Module and class
 * bodies are left alone.  Returns the number of variables set.
 *
 * The caller must keep its reference to `op` until the frame's operands are gone, since from 3.14 on they may borrow
 * from its variables.  So this is for callers that raise right away. */
int
plus_frame_forget(PyFrameObject *frame, PyObject *op);
