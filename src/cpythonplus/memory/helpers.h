/* What the room's helpers need of C, function by function; helpers_py.c has their table. */
#ifndef PLUS_MEMORY_HELPERS_H
#define PLUS_MEMORY_HELPERS_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_helpers_methods[];

/* exceptions_py.c */
PyObject *
plus_memory_bare_frame(PyObject *module, PyObject *args);
PyObject *
plus_memory_frame_generator(PyObject *module, PyObject *frame);
PyObject *
plus_memory_reraise(PyObject *module, PyObject *raised);

/* closures_py.c */
PyObject *
plus_memory_close_cells(PyObject *module, PyObject *args);

/* weakrefs_py.c */
PyObject *
plus_memory_clear_weakrefs(PyObject *module, PyObject *args);

#endif
