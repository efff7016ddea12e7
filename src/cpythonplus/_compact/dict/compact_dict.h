/* A CompactDict as an object: access to one entry, and the collector's view.  GIL held. */
#pragma once

#include "../state.h"
#include "compact_find.h"
#include "compact_table.h"

typedef struct {
    PyObject_HEAD struct plus_compact table;
} plus_compact_dict;

static inline struct plus_compact *
plus_compact_of(PyObject *op)
{
    return &((plus_compact_dict *)op)->table;
}

/* True if the object is a CompactDict or an instance of a derived class. */
static inline bool
plus_compact_check(const struct plus_compact_state *state, PyObject *op)
{
    return PyObject_TypeCheck(op, state->compact_dict);
}

/* A new object of a type, and one with the entries of another CompactDict; NULL with an exception. */
PyObject *
plus_compact_new(PyTypeObject *type);
PyObject *
plus_compact_copied(PyObject *dict);

/* The value of a key, borrowed; NULL, without an exception if the key is missing. */
PyObject *
plus_compact_get(PyObject *dict, PyObject *key);

/* set: set a key. add: add a missing key, with its hash.  0, or -1 with an exception. */
int
plus_compact_set(PyObject *dict, PyObject *key, PyObject *value);
int
plus_compact_add(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject *value);

/* Remove an entry and give its value to the caller.  1; 0 if the key is missing; -1 with an exception. */
int
plus_compact_take(PyObject *dict, PyObject *key, PyObject **value);
