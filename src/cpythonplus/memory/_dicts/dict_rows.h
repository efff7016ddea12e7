/* Dicts with the same keys, counted during a walk over the heap: rows of a table that could be stored with less
 * memory.  With the GIL held; runs no code of the program, makes no Python object. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/layouts.h"

#define PLUS_ROW_KEYS 64 /* a dict with more keys is no row */
#define PLUS_ROW_SAMPLES 32

/* The least number of dicts with equal keys that get a row of their own.  Smaller groups are added to `small`. */
#define PLUS_ROWS_LEAST 100

/* Dicts with the same strings as keys, in the same order. */
struct plus_dict_rows {
    const void *hash; /* of the keys; never NULL */
    Py_ssize_t keys, count, size_bytes;
    size_t met;                          /* number of samples so far */
    PyObject *samples[PLUS_ROW_SAMPLES]; /* borrowed; the last ones */
};

struct plus_dict_rows_table {
    struct plus_record_table rows; /* by hash */
    Py_ssize_t groups;
    struct plus_dict_rows small; /* all small dicts that are in no group */
    Py_ssize_t small_keys;       /* keys of all of them */
};

/* Counts a dict, or takes it out of the count again if it is the dict of an instance, which is counted by class.
 * Other objects are ignored.  0, or -ENOMEM. */
int
plus_dict_rows_count(struct plus_dict_rows_table *table, PyObject *dict, int by);

/* Adds groups that are too small to `small`. */
void
plus_dict_rows_finish(struct plus_dict_rows_table *table);

/* Returns the bytes of `count` keys and values in a dict that shares its keys, in a Record and in a CompactDict,
 * rounded as allocators do: multiples of 16 bytes, with the collector's header. */
Py_ssize_t
plus_shared_dict_bytes(Py_ssize_t count);
Py_ssize_t
plus_record_bytes(Py_ssize_t count);
Py_ssize_t
plus_compact_dict_bytes(Py_ssize_t count);

/* The bytes of a CompactDict with the items of `dict`, estimated from the first keys: a key that is neither a string
 * nor a number has its hash stored with it. */
Py_ssize_t
plus_compacted_bytes(PyObject *dict);
