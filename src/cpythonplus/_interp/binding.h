/* What this room adds to the extension. */
#ifndef PLUS_INTERP_BINDING_H
#define PLUS_INTERP_BINDING_H

#include "../_base/compat.h"

/* Registers the facts, before any room asks for one, and adds the functions.  0, or -1 with an exception. */
int
plus_interp_exec(PyObject *module);

#endif
