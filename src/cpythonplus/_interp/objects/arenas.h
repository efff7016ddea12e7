/* pymalloc's arenas, found and read from outside.
 *
 * The interpreter keeps a private vector of arenas.  A half-used pool leads to the table of such pools; the vector's
 * address is behind that table (from 3.12 on), or in the same data segment (3.11).  Each finding is verified: every
 * pool of every arena has to agree with the vector.
 *
 * GIL held, so that arenas neither come nor go; for the calling interpreter only.  Calls PyObject_Malloc; else nothing
 * changes.  Copies come from malloc. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/segments.h"
#include "pools.h"

struct plus_arena {
    uintptr_t start, end; /* as mapped; the first pool begins at the next multiple of 16 KiB */
    uintptr_t carved;     /* end of the pools; the rest has never been used */
    uint32_t free_pools;  /* without a block in use, including those above `carved` */
    uint32_t total_pools;
};

struct plus_arenas {
    struct plus_arena *list; /* by rising address */
    size_t count;
    size_t taken_blocks;
    /* Blocks that this allocator took from malloc; -1 on 3.11, which does not count them. */
    Py_ssize_t larger_blocks;
};

/* NULL, and the arenas are the caller's until plus_arenas_free(); else the reason why they cannot be read, one sentence
 * without a full stop.  `segments`: those of all libraries; on 3.11 the vector's address is in one of them. */
const char *
plus_arenas_find(struct plus_arenas *arenas, const struct plus_segments *segments);

void
plus_arenas_free(struct plus_arenas *arenas);

/* The address of the first pool in an arena that begins at `start`. */
static inline uintptr_t
plus_arena_pools(uintptr_t start)
{
    return (start + PLUS_POOL_BYTES - 1) & ~(PLUS_POOL_BYTES - 1);
}
