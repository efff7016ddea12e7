/* The references of functions that are being executed, which the garbage collector cannot see.
 *
 * GIL held; makes no objects, not even frame objects. */
#pragma once

#include "../../_base/compat.h"

/* Call `visit` for each bound variable of each Python frame of each thread of this interpreter, innermost first, with
 * `index` of co_localsplusnames; a cell is passed as the cell.  Each frame's code object is passed first, with index -1.
 * All is borrowed.  Ends at the first non-zero result, which is returned; else 0.  `visit` must not run Python code. */
int
plus_live_frames_visit(int (*visit)(PyCodeObject *code, int index, PyObject *value, void *arg),
                       void *arg);

/* In a copy of the process: from now on plus_live_frames_visit() passes also what else a frame has, with index
 * co_nlocalsplus: operands, function, frame object (plus_frames_visit_unnamed()), if PLUS_FACT_OPERANDS has been proven.
 * Why not always: up to 3.13 operands are found by the bytecode, which makes objects. */
void
plus_live_frames_ask_unnamed(void);

/* In a copy of the process: from now on plus_live_frames_visit() visits the frame of this frame object, too, and those that
 * have called it: the stack of a greenlet that is suspended.  0, or -ENOMEM. */
int
plus_live_frames_note(PyFrameObject *innermost);
