/* Looking a key up in a CompactDict's table.  GIL held.
 *
 * Runs other code, a comparison, only for keys that are not simple, and then searches again if the table may have
 * changed. */
#pragma once

#include "compact_entries.h"

/* The hash of a key; -1 with an exception in a dict's words if it has none. */
Py_hash_t
plus_compact_hash_of(PyObject *key);

/* The position of a key; -1 if it is missing; -2 with the exception of a comparison. */
Py_ssize_t
plus_compact_find(const struct plus_compact *table, PyObject *key, Py_hash_t hash);

/* Like plus_compact_find(), but computes the hash only if it is needed (rarely for a few simple keys); the exception
 * may come from __hash__. */
Py_ssize_t
plus_compact_look_up(const struct plus_compact *table, PyObject *key);
