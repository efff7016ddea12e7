/* What this room adds to the extension. */
#ifndef PLUS_MEMORY_BINDING_H
#define PLUS_MEMORY_BINDING_H

#include "../_base/compat.h"

extern PyMethodDef plus_memory_methods[];
extern PyMethodDef plus_memory_agent_methods[];       /* agent_py.c */
extern PyMethodDef plus_memory_caches_methods[];      /* caches_py.c */
extern PyMethodDef plus_memory_census_methods[];      /* census_py.c */
extern PyMethodDef plus_memory_dicts_methods[];       /* dicts_py.c */
extern PyMethodDef plus_memory_helpers_methods[];     /* helpers_py.c */
extern PyMethodDef plus_memory_owners_methods[];      /* owners_py.c */
extern PyMethodDef plus_memory_profilers_methods[];   /* profilers_py.c */
extern PyMethodDef plus_memory_resident_methods[];    /* resident_py.c */
extern PyMethodDef plus_memory_shared_keys_methods[]; /* shared_keys_py.c */
extern PyMethodDef plus_memory_trim_methods[];        /* trim_py.c */
extern PyMethodDef plus_memory_walk_methods[];        /* heap_walk_py.c */

/* compact_dict_py.c and compact_views_py.c: 0, or -1 with an exception. */
int
plus_compact_exec(PyObject *module);

/* record_py.c: 0, or -1 with an exception. */
int
plus_record_exec(PyObject *module);

/* arenas_py.c */
PyObject *
plus_memory_arenas(PyObject *module, PyObject *args);

/* weakrefs_py.c */
PyObject *
plus_memory_clear_weakrefs(PyObject *module, PyObject *args);

/* Appends what Py_BuildValue() gave, and takes the reference to it; else `*rows` becomes NULL, and so it may be. */
static inline void
plus_append_row(PyObject **rows, PyObject *row)
{
    if (*rows != NULL && (row == NULL || PyList_Append(*rows, row) < 0)) {
        Py_CLEAR(*rows);
    }
    Py_XDECREF(row);
}

#endif
