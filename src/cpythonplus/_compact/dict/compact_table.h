/* Changing the table of a CompactDict (compact_entries.h).  With the GIL held.
 *
 * Runs no other code, but for plus_compact_clear(): what is taken out is the caller's, who releases it when the table is
 * whole. */
#ifndef PLUS_MEMORY_COMPACT_TABLE_H
#define PLUS_MEMORY_COMPACT_TABLE_H

#include "compact_entries.h"

/* Appends a key that is not there: new references to both.  0, or -1 with MemoryError and the table as before. */
int
plus_compact_append(struct plus_compact *table, PyObject *key, Py_hash_t hash, PyObject *value);

/* Takes an entry out: its references are the caller's. */
void
plus_compact_remove(struct plus_compact *table, Py_ssize_t at, PyObject **key, PyObject **value);

/* The same with the last one, which leaves no hole.  The table is not empty. */
void
plus_compact_pop(struct plus_compact *table, PyObject **key, PyObject **value);

/* Room for so many entries at once, and not one more.  0, or -1 with MemoryError. */
int
plus_compact_reserve(struct plus_compact *table, Py_ssize_t count);

/* Gives back room for more than a sixteenth more than there is. */
void
plus_compact_fit(struct plus_compact *table);

/* Another table with the same entries and no hole; new references.  0, or -1 with MemoryError and an empty *copy. */
int
plus_compact_copy(const struct plus_compact *table, struct plus_compact *copy);

/* Releases all entries and frees the table.  What *table was is empty before the first one goes. */
void
plus_compact_clear(struct plus_compact *table);

/* Bytes that it takes beside itself. */
Py_ssize_t
plus_compact_bytes(const struct plus_compact *table);

#endif
