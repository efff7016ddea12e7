/* How far an iterator of itertools has got that has no `__reduce__`: all from 3.14 on, pairwise and batched before.
 *
 * All with the GIL held, for whom PLUS_FACT_ITERTOOLS holds.
 */
#ifndef PLUS_INTERP_ITERTOOLS_STATE_H
#define PLUS_INTERP_ITERTOOLS_STATE_H

#include "../../_base/compat.h"

/* A tuple: an int whose bits say which fields are NULL, then the fields in their order, None for those.  NULL with
 * TypeError: none of itertools, or one whose state is not known. */
PyObject *
plus_itertools_capture(PyObject *iterator);

/* Puts one of the same class where that was found.  0, or -1 with ValueError and nothing changed: it does not fit. */
int
plus_itertools_restore(PyObject *iterator, PyObject *captured);

#endif
