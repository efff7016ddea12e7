/* The interpreter's free lists: freed objects that it keeps for reuse. */
#pragma once

#include "../../_base/compat.h"

/* Returns the text that sys._debugmallocstats() writes about the allocator and the free lists, as a str.
 *
 * It writes to the C library's `stderr`, which is replaced for the call; output of other threads still reaches the
 * original stream.  None if the interpreter has no such function, or the C library (musl) no such variable, or if the
 * program has replaced the function.  NULL with MemoryError.  With the GIL held, not on a free-threaded build; the
 * time is in proportion to the arenas. */
PyObject *
plus_free_lists_text(void);
