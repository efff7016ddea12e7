/* A frame's variables.  GIL held; no Python code runs, and the frame is not changed: before 3.13 reading
 * `frame.f_locals` would leave a dict in it that keeps its variables alive. */
#pragma once

#include "../../_base/compat.h"

/* The bound local and free variables of `frame`: a new dict with str keys, NULL with an exception.  A cell is replaced
 * by its contents. */
PyObject *
plus_frame_variables(PyObject *frame);
