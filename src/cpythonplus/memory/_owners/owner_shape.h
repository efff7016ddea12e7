/* Whether the ways to two objects differ in keys and indices only: `SESSIONS['a'].history` and `SESSIONS['b'].history`. */
#ifndef PLUS_MEMORY_OWNER_SHAPE_H
#define PLUS_MEMORY_OWNER_SHAPE_H

#include "../../_heap/reach.h"

/* The same number, not 0, for ways that look alike.  In a copy of the process; makes no object. */
uint64_t
plus_owner_shape(const struct plus_reach *owners, uint32_t node);

#endif
