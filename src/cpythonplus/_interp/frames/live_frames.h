/* What the functions that are being executed hold: the collector does not know it.
 *
 * With the GIL held; makes nothing, not even frame objects. */
#ifndef PLUS_INTERP_LIVE_FRAMES_H
#define PLUS_INTERP_LIVE_FRAMES_H

#include "../../_base/compat.h"

/* Calls `visit` for each variable that is bound, of each Python frame of each thread of this interpreter,
 * innermost first: cells as cells, `index` that of co_localsplusnames; and for the code, with index -1.  All is
 * borrowed.  Ends at the first result that is not 0, which is returned; else 0.  What is on the operand stack
 * is left out: up to 3.13 a frame does not tell how much of it is in use.  `visit` must not run Python code. */
int
plus_live_frames_visit(int (*visit)(PyCodeObject *code, int index, PyObject *value, void *arg),
                       void *arg);

#endif
