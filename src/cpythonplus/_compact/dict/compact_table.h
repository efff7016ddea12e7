/* Changing the table of a CompactDict (compact_entries.h).  GIL held.
 *
 * Runs no other code, except plus_compact_clear(): the caller gets removed references and releases them when the table
 * is consistent. */
#pragma once

#include "compact_entries.h"

/* Append a missing key: new references to both.  0, or -1 with MemoryError and the table as before. */
int
plus_compact_append(struct plus_compact *table, PyObject *key, Py_hash_t hash, PyObject *value);

/* Remove an entry: the caller gets its references. */
void
plus_compact_remove(struct plus_compact *table, Py_ssize_t at, PyObject **key, PyObject **value);

/* Remove the last entry, which leaves no hole: the caller gets its references.  The table must not be empty. */
void
plus_compact_pop(struct plus_compact *table, PyObject **key, PyObject **value);

/* Make room for exactly `count` entries.  0, or -1 with MemoryError. */
int
plus_compact_reserve(struct plus_compact *table, Py_ssize_t count);

/* Free the room for more than a sixteenth more entries than there are. */
void
plus_compact_fit(struct plus_compact *table);

/* A copy with the same entries and no hole; new references.  0, or -1 with MemoryError and an empty *copy. */
int
plus_compact_copy(const struct plus_compact *table, struct plus_compact *copy);

/* Free the table and release all entries. *table is empty before the first one is released. */
void
plus_compact_clear(struct plus_compact *table);

/* The bytes of the table beside the word itself. */
Py_ssize_t
plus_compact_bytes(const struct plus_compact *table);
