#include "pools.h"

#include "probes.h"

bool
plus_read_pools(uintptr_t first, struct plus_pool_header *headers, size_t count)
{
    struct plus_range headers_at[PLUS_POOLS_AT_ONCE];

    if (count == 0 || count > PLUS_POOLS_AT_ONCE) {
        return count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        headers_at[i] =
            (struct plus_range){plus_pool_header_at(first + i * PLUS_POOL_BYTES), sizeof *headers};
    }
    return plus_read_ranges(headers_at, count, headers);
}

/* ---- whether pools are as they are known ---------------------------------------------------------- */

/* What PYTHONMALLOC=debug has before and behind a block. */
#define HOOK_BEFORE_BYTES ((uintptr_t)2 * sizeof(size_t))
#define HOOK_BYTES ((size_t)4 * sizeof(size_t))
#define TRIED 40 /* one more than a pool of the largest blocks has */

/* Of a block that pymalloc gave out, if there is a header. */
static bool
read_header(uintptr_t block, struct plus_pool_header *header)
{
    uintptr_t pool = plus_pool_of((void *)block);

    return plus_read_memory(plus_pool_header_at(pool), header, sizeof *header) &&
           plus_pool_is_used(header) &&
           header->size_index == PLUS_LARGEST_BLOCK / PLUS_BLOCK_STEP - 1 &&
           block - pool >= sizeof *header &&
           (block - pool - sizeof *header) % PLUS_LARGEST_BLOCK == 0;
}

/* Two blocks of one pool, the second taken right after the first: it is given back, and comes again. */
static bool
header_follows(uintptr_t first, void **second, uintptr_t before, size_t request)
{
    struct plus_pool_header both, one, again;
    uintptr_t block = (uintptr_t)*second - before;

    if (!read_header(first, &both) || !read_header(block, &both)) {
        return false;
    }
    PyObject_Free(*second);
    bool follows =
        read_header(first, &one) && one.taken == both.taken - 1 && one.free_block == (void *)block;
    *second = PyObject_Malloc(request);
    return follows && *second != NULL && (uintptr_t)*second - before == block &&
           read_header(first, &again) && again.taken == both.taken &&
           again.free_block == both.free_block && again.next_offset == both.next_offset;
}

static bool
pools_fit(uintptr_t before, size_t request)
{
    void *blocks[TRIED] = {PyObject_Malloc(request)};
    bool fit = false, same = false;
    int count = blocks[0] != NULL;

    while (count > 0 && count < TRIED && !same &&
           (blocks[count] = PyObject_Malloc(request)) != NULL) {
        same = plus_pool_of(blocks[count]) == plus_pool_of(blocks[count - 1]);
        count++;
    }
    if (same) {
        fit = header_follows((uintptr_t)blocks[count - 2] - before, &blocks[count - 1], before,
                             request);
    }
    while (count > 0) {
        PyObject_Free(blocks[--count]);
    }
    return fit;
}

const char *
plus_probe_pools(void)
{
    if (!plus_memory_is_readable()) {
        return PLUS_MEMORY_UNREADABLE;
    }
    return pools_fit(0, PLUS_LARGEST_BLOCK) ||
                   pools_fit(HOOK_BEFORE_BYTES, PLUS_LARGEST_BLOCK - HOOK_BYTES)
               ? NULL
               : "objects do not come from pymalloc here";
}
