/* The method tables and functions of this folder. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_memory_methods[];
extern PyMethodDef plus_memory_caches_methods[];   /* caches_py.c */
extern PyMethodDef plus_memory_census_methods[];   /* census_py.c */
extern PyMethodDef plus_memory_dicts_methods[];    /* dicts_py.c */
extern PyMethodDef plus_memory_helpers_methods[];  /* helpers_py.c */
extern PyMethodDef plus_memory_owners_methods[];   /* owners_py.c */
extern PyMethodDef plus_memory_resident_methods[]; /* resident_py.c */
extern PyMethodDef plus_memory_trim_methods[];     /* trim_py.c */

/* arenas_py.c */
PyObject *
plus_memory_arenas(PyObject *module, PyObject *args);

/* mimalloc_py.c */
PyObject *
plus_memory_mimalloc(PyObject *module, PyObject *walks);

/* weakrefs_py.c */
PyObject *
plus_memory_clear_weakrefs(PyObject *module, PyObject *args);
