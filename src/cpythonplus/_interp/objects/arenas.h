/* pymalloc's arenas, found and read from outside.
 *
 * The interpreter keeps a vector of them that it names to nobody.  A pool that is half used leads to the table of such
 * pools, and behind that table (from 3.12 on), or in the same data segment (3.11), the vector's address lies.
 * Nothing of this is believed: every pool of every arena has to agree with what the vector says.
 *
 * All with the GIL held, without which arenas neither come nor go; of the calling interpreter.  Calls
 * PyObject_Malloc; else nothing changes.  Copies come from malloc. */
#ifndef PLUS_INTERP_ARENAS_H
#define PLUS_INTERP_ARENAS_H

#include "../../_base/compat.h"
#include "../../_base/memory/segments.h"
#include "pools.h"

struct plus_arena {
    uintptr_t start,
        end; /* as they were mapped; the first pool begins at the next multiple of 16 KiB */
    uintptr_t carved;    /* pools lie below; what is above has never been used */
    uint32_t free_pools; /* with no block taken, those above `carved` included */
    uint32_t total_pools;
};

struct plus_arenas {
    struct plus_arena *list; /* by rising address */
    size_t count;
    size_t taken_blocks;
    Py_ssize_t
        larger_blocks; /* that were asked of the same allocator and went to malloc; -1: not told by 3.11 */
};

/* NULL, and the arenas are the caller's until plus_arenas_free(); else why they cannot be seen, one sentence without a
 * full stop.  `segments`: of all libraries, in one of which 3.11 has its vector's address. */
const char *
plus_arenas_find(struct plus_arenas *arenas, const struct plus_segments *segments);

void
plus_arenas_free(struct plus_arenas *arenas);

/* The first pool's address in an arena that begins there. */
static inline uintptr_t
plus_arena_pools(uintptr_t start)
{
    return (start + PLUS_POOL_BYTES - 1) & ~(PLUS_POOL_BYTES - 1);
}

#endif
