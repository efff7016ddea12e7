/* What this room adds to the extension. */
#ifndef PLUS_HEAP_BINDING_H
#define PLUS_HEAP_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_heap_walk_methods[]; /* heap_walk_py.c */

#endif
