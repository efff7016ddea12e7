/* Method tables of the folder _heap. */
#ifndef PLUS_HEAP_BINDING_H
#define PLUS_HEAP_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_heap_walk_methods[]; /* heap_walk_py.c */

#endif
