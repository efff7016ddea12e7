/* What this room adds to the extension. */
#ifndef PLUS_MEMORY_BINDING_H
#define PLUS_MEMORY_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_methods[];
extern PyMethodDef plus_memory_walk_methods[];   /* heap_walk_py.c */
extern PyMethodDef plus_memory_caches_methods[]; /* caches_py.c */
extern PyMethodDef plus_memory_dicts_methods[];  /* dicts_py.c */
extern PyMethodDef plus_memory_census_methods[]; /* census_py.c */

#endif
