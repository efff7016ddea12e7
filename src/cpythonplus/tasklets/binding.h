/* What the room adds to the extension module. */
#ifndef PLUS_TASKLETS_BINDING_H
#define PLUS_TASKLETS_BINDING_H

#include "../_base/compat.h"

/* Adds the types and functions, unless the interpreter cannot have them; then `tasklets_refusal` alone.  0 or -1
 * with an exception. */
int
plus_tasklets_exec(PyObject *module);

#endif
