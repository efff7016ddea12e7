/* What update() and the constructor of a CompactDict take.  With the GIL held; other code may run. */
#ifndef PLUS_MEMORY_COMPACT_UPDATE_H
#define PLUS_MEMORY_COMPACT_UPDATE_H

#include "compact_dict.h"

/* Sets what the source has, which is whatever dict() takes.  0, or -1 with an exception. */
int
plus_compact_update(PyObject *dict, PyObject *source);

/* Room for what is about to come, in an empty one, as far as there is memory; plus_compact_fit() gives back what was too
 * much.  Runs no other code. */
void
plus_compact_reserve_for(const struct plus_compact_state *state, PyObject *dict, PyObject *source);

#endif
