/* A frame's variables.  GIL held; no Python code runs, and the frame stays as it is: reading
 * `frame.f_locals` before 3.13 would leave a dict in it that keeps its variables alive. */
#ifndef PLUS_INTERP_FRAME_VARIABLES_H
#define PLUS_INTERP_FRAME_VARIABLES_H

#include "../../_base/compat.h"

/* The local and free variables of `frame` that are bound: a new dict of str, NULL with an exception.  A cell counts
 * as what is in it. */
PyObject *
plus_frame_variables(PyObject *frame);

#endif
