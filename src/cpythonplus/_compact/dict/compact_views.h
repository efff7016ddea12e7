/* Iterators and views of a CompactDict.  With the GIL held. */
#pragma once

#include "compact_dict.h"

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
