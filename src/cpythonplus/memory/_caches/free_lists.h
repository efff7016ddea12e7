/* What lies in the interpreter's free lists: freed objects that it keeps to use them again. */
#ifndef PLUS_MEMORY_FREE_LISTS_H
#define PLUS_MEMORY_FREE_LISTS_H

#include "../../_base/compat.h"

/* What sys._debugmallocstats() writes about the allocator and the free lists, as a str.
 *
 * It writes to the C library's standard error, which is replaced for the call; what other threads write there
 * meanwhile arrives where it should.  None where the interpreter has no such function, or the C library (musl) no
 * such variable, or the program has put something else in its place.  NULL with MemoryError.  With the GIL held,
 * not on a free-threaded build; takes time in proportion to the arenas. */
PyObject *
plus_free_lists_text(void);

#endif
