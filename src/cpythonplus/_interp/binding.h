/* The entry point of _interp in the extension. */
#pragma once

#include "../_base/compat.h"

/* Register the facts, before other code asks for one, and add the functions.  0, or -1 with an exception. */
int
plus_interp_exec(PyObject *module);
