/* Pages of pymalloc's empty pools, given back to the kernel.
 *
 * pymalloc gives memory back by whole arenas (1 MiB): a single block in one of its 64 pools keeps them all.  Here an
 * empty pool goes back by itself, but for its first page, which has the header that links it to its arena. */
#ifndef PLUS_INTERP_POOL_PAGES_H
#define PLUS_INTERP_POOL_PAGES_H

#include "../../_base/compat.h"

enum plus_pool_pages_result {
    PLUS_POOL_PAGES_DONE,
    PLUS_POOL_PAGES_NO_POOLS, /* objects do not come from pymalloc: PYTHONMALLOC, a profiler, another build */
    PLUS_POOL_PAGES_UNREADABLE,  /* the kernel lets nobody look where blocks come from */
    PLUS_POOL_PAGES_LARGE_PAGES, /* a page of the kernel is as large as a pool */
    PLUS_POOL_PAGES_OTHERS,      /* called in an interpreter that is not the main one */
};

struct plus_pool_pages {
    size_t
        pools; /* empty ones that pymalloc keeps: all but the first page of each has no memory any more */
    size_t arenas; /* had become empty on the way, and are unmapped */
};

/* Gives back what can be; *done is set for PLUS_POOL_PAGES_DONE, and is zero for all others, where nothing was
 * changed.  With the GIL held all the time: 5 to 10 ms for 100 MiB.  Runs no Python code.  What is short of
 * memory here leaves pools as they are. */
enum plus_pool_pages_result
plus_pool_pages_release(struct plus_pool_pages *done);

#endif
