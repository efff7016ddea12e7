/* Tells whether the paths to two objects differ in keys and indices only: `SESSIONS['a'].history` and
 * `SESSIONS['b'].history`. */
#pragma once

#include "../../_heap/reach.h"

/* Returns the same number, never 0, for paths that look alike.  Used in a copy of the process; makes no Python
 * object. */
uint64_t
plus_owner_shape(const struct plus_reach *owners, uint32_t node);
