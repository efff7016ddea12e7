/* Variables of a running Python function. */
#pragma once

#include "../../_base/compat.h"

/* Set to None each variable of `frame`, its own and those of enclosing functions, that is `op`.  Module and class
 * bodies are left alone.  Returns the number of variables set.
 *
 * GIL held.  Runs no Python code, for the caller holds a reference to `op`.  The caller must keep that reference until
 * the frame's operands are gone, since from 3.14 on they may borrow from its variables.  So this is for callers that
 * raise right away. */
int
plus_frame_forget(PyFrameObject *frame, PyObject *op);
