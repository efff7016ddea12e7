/* The entry point of _interp in the extension. */
#ifndef PLUS_INTERP_BINDING_H
#define PLUS_INTERP_BINDING_H

#include "../_base/compat.h"

/* Register the facts, before other code asks for one, and add the functions.  0, or -1 with an exception. */
int
plus_interp_exec(PyObject *module);

#endif
