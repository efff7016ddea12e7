/* Who keeps how much of the heap, and what has grown since an earlier look. */
#ifndef PLUS_MEMORY_OWNERS_H
#define PLUS_MEMORY_OWNERS_H

#include "../../_heap/reach.h"

/* A new dict of plain data (owners_py.c says of what); NULL with an exception.  before: a mark, or NULL.  least: bytes
 * from which on something is told.  asked: a class that is told in any case, or NULL. */
PyObject *
plus_owners_report(const struct plus_reach *owners, const void *before, size_t before_bytes,
                   uint64_t least, const PyTypeObject *asked);

#endif
