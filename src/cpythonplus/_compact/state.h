/* The references of the types and functions of _compact, in each interpreter.  GIL held. */
#pragma once

#include "../_base/compat.h"

/* Owned references only, set when the module is initialised; shared_keys is set by the first row. */
struct plus_compact_state {
    PyObject *shared_keys;                         /* the key sets that dicts share (key_sets.h) */
    PyTypeObject *compact_dict, *compact_iterator; /* compact_dict.h */
    PyTypeObject *compact_keys, *compact_values, *compact_items;
    PyObject *record_type, *record_base, *frozen_record_base, *record_closer; /* record_py.c */
    PyObject *record_maker; /* copyreg.__newobj__ */
};

extern struct PyModuleDef plus_native_module; /* of the whole extension */
extern const size_t plus_compact_state_at;    /* the offset of this state in the module's */

static inline struct plus_compact_state *
plus_compact_state(PyObject *module)
{
    char *state = PyModule_GetState(module);

    return state != NULL ? (struct plus_compact_state *)(state + plus_compact_state_at) : NULL;
}

/* The state of the module that made `type` or one of its bases; NULL with an exception. */
static inline struct plus_compact_state *
plus_compact_state_of_type(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &plus_native_module);

    return module != NULL ? plus_compact_state(module) : NULL;
}

int
plus_compact_state_traverse(PyObject *module, visitproc visit, void *arg);
int
plus_compact_state_clear(PyObject *module);
