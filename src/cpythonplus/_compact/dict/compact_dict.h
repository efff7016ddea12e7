/* A CompactDict as an object: one entry at a time, and the collector.  With the GIL held. */
#ifndef PLUS_MEMORY_COMPACT_DICT_H
#define PLUS_MEMORY_COMPACT_DICT_H

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

/* Whether the object is a CompactDict, of whatever class. */
static inline bool
plus_compact_check(const struct plus_compact_state *state, PyObject *op)
{
    return PyObject_TypeCheck(op, state->compact_dict);
}

/* A new one of a type, and one with the entries of another; NULL with an exception. */
PyObject *
plus_compact_new(PyTypeObject *type);
PyObject *
plus_compact_copied(PyObject *dict);

/* The value of a key, borrowed; NULL, without an exception if it is not there. */
PyObject *
plus_compact_get(PyObject *dict, PyObject *key);

/* Sets a key; adds one that is not there, whose hash this is.  0, or -1 with an exception. */
int
plus_compact_set(PyObject *dict, PyObject *key, PyObject *value);
int
plus_compact_add(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject *value);

/* Takes an entry out and gives its value to the caller.  1; 0: it is not there; -1 with an exception. */
int
plus_compact_take(PyObject *dict, PyObject *key, PyObject **value);

#endif
