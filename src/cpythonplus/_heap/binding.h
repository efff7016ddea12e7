/* Method tables of the folder _heap. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_heap_walk_methods[]; /* heap_walk_py.c */
