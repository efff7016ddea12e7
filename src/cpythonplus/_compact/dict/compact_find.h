/* Looking a key up in a CompactDict's table.  With the GIL held.
 *
 * Runs other code, a comparison, only for keys that are not simple.  Then it looks again at whatever may have changed. */
#ifndef PLUS_MEMORY_COMPACT_FIND_H
#define PLUS_MEMORY_COMPACT_FIND_H

#include "compact_entries.h"

/* The hash of a key that is asked for; -1 with an exception, in a dict's words: it has none. */
Py_hash_t
plus_compact_hash_of(PyObject *key);

/* The position of a key, -1: it is not there; -2 with an exception that a comparison raised. */
Py_ssize_t
plus_compact_find(const struct plus_compact *table, PyObject *key, Py_hash_t hash);

/* The same without a hash, which few keys of few need; an exception may be the hash's. */
Py_ssize_t
plus_compact_look_up(const struct plus_compact *table, PyObject *key);

#endif
