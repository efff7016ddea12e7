/* What the gil room adds to the extension module. */
#ifndef PLUS_GIL_BINDING_H
#define PLUS_GIL_BINDING_H

#include "../base/compat.h"

extern PyMethodDef plus_gil_methods[];

/* Adds the type of `atomic` and the entry object itself.  0, or -1 with an exception. */
int
plus_atomic_init(PyObject *module);

/* (sections, contended, overlong, longest_ns, abandoned), a new tuple. */
PyObject *
plus_atomic_counts(void);
void
plus_atomic_reset_counts(void);

#endif
