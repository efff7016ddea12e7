/* What the gil room adds to the extension module. */
#ifndef PLUS_GIL_BINDING_H
#define PLUS_GIL_BINDING_H

#include "../_base/compat.h"

#include <stdbool.h>

extern PyMethodDef plus_gil_methods[];

/* Adds `atomic`, which is each interpreter's own.  0, or -1 with an exception. */
int
plus_atomic_init(PyObject *module);

/* This thread's GIL is not taken away from here to plus_atomic_let_go(), as inside of a section.  Both may let other
 * threads run.  False, without an exception, where that cannot be had. */
bool
plus_atomic_hold(void);
void
plus_atomic_let_go(void);

/* (sections, contended, overlong, longest_ns, abandoned), a new tuple. */
PyObject *
plus_atomic_counts(void);
void
plus_atomic_reset_counts(void);

#endif
