/* What memory.trim() needs of C; trimming.py gives it its public form. */
#ifndef PLUS_MEMORY_TRIM_H
#define PLUS_MEMORY_TRIM_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_trim_methods[];

#endif
