/* The sources of update() and the constructor of a CompactDict.  GIL held; other code may run. */
#pragma once

#include "compact_dict.h"

/* Set the entries of the source, which is any argument of dict().  0, or -1 with an exception. */
int
plus_compact_update(PyObject *dict, PyObject *source);

/* Make room for the source's entries in an empty dict, as far as there is memory; plus_compact_fit() frees unused room.
 * Runs no other code. */
void
plus_compact_reserve_for(const struct plus_compact_state *state, PyObject *dict, PyObject *source);
