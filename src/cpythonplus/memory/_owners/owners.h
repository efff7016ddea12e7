/* The owners of the heap, and the growth since an earlier look. */
#pragma once

#include "../../_heap/reach.h"

/* Returns a new dict of plain data, as owners_py.c describes it; NULL with an exception. before: a mark, or NULL.
 * least: owners with fewer bytes are left out. asked: a class that is reported in any case, or NULL. */
PyObject *
plus_owners_report(const struct plus_reach *owners, const void *before, size_t before_bytes,
                   uint64_t least, const PyTypeObject *asked);
