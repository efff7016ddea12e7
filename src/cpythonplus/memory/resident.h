/* What memory/resident needs of C: its table is in resident_py.c. */
#ifndef PLUS_MEMORY_RESIDENT_H
#define PLUS_MEMORY_RESIDENT_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_resident_methods[];

/* arenas_py.c */
PyObject *
plus_memory_arenas(PyObject *module, PyObject *args);

#endif
