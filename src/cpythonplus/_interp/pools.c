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

bool
plus_pool_read(const void *block, size_t block_bytes, struct plus_pool_header *header)
{
    return plus_read_memory(plus_pool_header_at(plus_pool_of(block)), header, sizeof *header) &&
           plus_pool_has(header, block, block_bytes);
}

/* Two blocks of one pool, the second taken right after the first: it is given back, and comes again. */
static bool
header_follows(const char *first, char **second, const struct plus_pool_request *request)
{
    struct plus_pool_header both, one, again;
    char *block = *second - request->before;

    first -= request->before;
    if (!plus_pool_read(first, PLUS_LARGEST_BLOCK, &both) ||
        !plus_pool_read(block, PLUS_LARGEST_BLOCK, &both)) {
        return false;
    }
    PyObject_Free(*second);
    bool follows = plus_pool_read(first, PLUS_LARGEST_BLOCK, &one) && one.taken == both.taken - 1 &&
                   one.free_block == block;
    *second = PyObject_Malloc(request->bytes);
    return follows && *second != NULL && *second - request->before == block &&
           plus_pool_read(first, PLUS_LARGEST_BLOCK, &again) && again.taken == both.taken &&
           again.free_block == both.free_block && again.next_offset == both.next_offset;
}

static bool
serves(const struct plus_pool_request *request)
{
    char *blocks[TRIED] = {PyObject_Malloc(request->bytes)};
    bool fit = false, same = false;
    int count = blocks[0] != NULL;

    while (count > 0 && count < TRIED && !same &&
           (blocks[count] = PyObject_Malloc(request->bytes)) != NULL) {
        same = plus_pool_of(blocks[count]) == plus_pool_of(blocks[count - 1]);
        count++;
    }
    if (same) {
        fit = header_follows(blocks[count - 2], &blocks[count - 1], request);
    }
    while (count > 0) {
        PyObject_Free(blocks[--count]);
    }
    return fit;
}

bool
plus_pools_serve(struct plus_pool_request *request)
{
    *request = (struct plus_pool_request){PLUS_LARGEST_BLOCK, 0};
    if (serves(request)) {
        return true;
    }
    *request = (struct plus_pool_request){PLUS_LARGEST_BLOCK - HOOK_BYTES, HOOK_BEFORE_BYTES};
    return serves(request);
}

const char *
plus_probe_pools(void)
{
    struct plus_pool_request request;

    if (!plus_memory_is_readable()) {
        return PLUS_MEMORY_UNREADABLE;
    }
    return plus_pools_serve(&request) ? NULL : "objects do not come from pymalloc here";
}
