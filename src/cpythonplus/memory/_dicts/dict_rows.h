/* Dicts with the same keys, counted during a walk over the heap: rows of a table that could be stored tighter.  With the GIL
 * held; runs no code of the program, makes no object. */
#ifndef PLUS_MEMORY_DICT_ROWS_H
#define PLUS_MEMORY_DICT_ROWS_H

#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/layouts.h"

#define PLUS_ROW_KEYS 64 /* a dict with more keys is no row */
#define PLUS_ROW_SAMPLES 32

/* So many make a table.  Those that are fewer are counted with all others of their number of keys. */
#define PLUS_ROWS_LEAST 100

/* Dicts with the same strings as keys, in the same order. */
struct plus_dict_rows {
    const void *hash; /* of the keys: never NULL */
    Py_ssize_t keys, count, size_bytes;
    size_t met;                          /* how often a sample was taken */
    PyObject *samples[PLUS_ROW_SAMPLES]; /* borrowed; those that were met last */
};

struct plus_dict_rows_table {
    struct plus_record_table rows; /* by hash */
    Py_ssize_t groups;
    struct plus_dict_rows small; /* all small dicts that are in no group */
    Py_ssize_t small_keys;       /* of all of them */
};

/* Counts a dict, or takes it out of the count again (an instance's, which is its class's business).  What is no such dict is
 * left alone.  0, or -ENOMEM. */
int
plus_dict_rows_count(struct plus_dict_rows_table *table, PyObject *dict, int by);

/* Moves the groups that are too small to what they have in common. */
void
plus_dict_rows_finish(struct plus_dict_rows_table *table);

/* What `count` keys and values take in a dict that shares its keys, in a Record and in a CompactDict, as far as allocators
 * have it: multiples of 16 bytes, with the collector's head. */
Py_ssize_t
plus_shared_dict_bytes(Py_ssize_t count);
Py_ssize_t
plus_record_bytes(Py_ssize_t count);
Py_ssize_t
plus_compact_dict_bytes(Py_ssize_t count);

/* The same for the items of a dict, as far as its first keys tell: others than strings and numbers have their hash beside
 * them. */
Py_ssize_t
plus_compacted_bytes(PyObject *dict);

#endif
