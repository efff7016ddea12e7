/* The tasklets room's part of the extension module. */
#pragma once

#include "../_base/compat.h"

/* Adds the types and functions; if the interpreter cannot have them, only `tasklets_refusal`.  Returns 0, or -1 with an
 * exception. */
int
plus_tasklets_exec(PyObject *module);
