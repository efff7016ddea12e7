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

/* ---- sources of update() and the constructor (compact_update.c); other code may run ----------- */

/* Set the entries of the source, which is any argument of dict().  0, or -1 with an exception. */
int
plus_compact_update(PyObject *dict, PyObject *source);

/* Make room for the source's entries in an empty dict, as far as there is memory; plus_compact_fit() frees unused room.
 * Runs no other code. */
void
plus_compact_reserve_for(const struct plus_compact_state *state, PyObject *dict, PyObject *source);

/* ---- iterators and views (compact_views_py.c) ------------------------------------------------- */

/* The part that is iterated over. */
enum plus_compact_part {
    PLUS_COMPACT_KEYS,
    PLUS_COMPACT_VALUES,
    PLUS_COMPACT_ITEMS,
};

/* A new iterator, from the first entry on or from the last one. */
PyObject *
plus_compact_iterate(PyObject *dict, enum plus_compact_part part, bool reversed);

/* A new view: keys(), values() or items(). */
PyObject *
plus_compact_view(PyObject *dict, enum plus_compact_part part);

/* Add the types to the module.  0, or -1 with an exception. */
int
plus_compact_views_exec(PyObject *module, struct plus_compact_state *state);

/* ---- slots that use all entries (compact_whole_py.c); other code may run ----------------------- */

PyObject *
plus_compact_merge(PyObject *left, PyObject *right);
PyObject *
plus_compact_inplace_merge(PyObject *dict, PyObject *other);
PyObject *
plus_compact_richcompare(PyObject *dict, PyObject *other, int op);
PyObject *
plus_compact_repr(PyObject *dict);
