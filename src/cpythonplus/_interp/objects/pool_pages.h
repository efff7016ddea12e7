/* Giving pages of pymalloc's empty pools back to the kernel.
 *
 * pymalloc frees memory by whole arenas (1 MiB): a single block in one of its 64 pools keeps the arena.  Here the pages
 * of a single empty pool are given back, except the first, whose header links the pool to its arena. */
#pragma once

#include "../../_base/compat.h"

enum plus_pool_pages_result {
    PLUS_POOL_PAGES_DONE,
    /* Objects do not come from pymalloc: PYTHONMALLOC, a profiler, another build. */
    PLUS_POOL_PAGES_NO_POOLS,
    PLUS_POOL_PAGES_UNREADABLE,  /* the kernel forbids reading the memory of blocks */
    PLUS_POOL_PAGES_LARGE_PAGES, /* a page of the kernel is as large as a pool */
    PLUS_POOL_PAGES_OTHERS,      /* called in an interpreter that is not the main one */
};

struct plus_pool_pages {
    size_t pools;  /* empty pools that pymalloc keeps, each with memory for its first page only */
    size_t arenas; /* that became empty on the way and are unmapped */
};

/* Give back the pages. *done is set for PLUS_POOL_PAGES_DONE, and zero for all other results, in which case nothing was
 * changed.  The GIL is held all the time: 5 to 10 ms for 100 MiB.  Runs no Python code.  If memory is short, the
 * remaining pools stay as they are. */
enum plus_pool_pages_result
plus_pool_pages_release(struct plus_pool_pages *done);
