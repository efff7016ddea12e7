/* The proof that objects come from pools as pools.h describes them.
 *
 * Data that looks like a header cannot be told from a header.  But a header can be watched:
 *
 *     1. a block is taken, until its header says that its pool has another one in use: at most three times
 *     2. it is given back    the header's count is one less, and that block is its first free one
 *     3. it is taken again   the same block comes, and the header is as it was in 1
 *
 * An empty pool would leave the list in step 2, and another one might serve step 3; so the pool must have another block
 * in use, by any owner.  All blocks are the proof's own, and none is written to.  They are of the largest size, so that
 * the most used pools are not disturbed.
 *
 *     request             what pymalloc gets               where the block begins
 *     512 bytes           512                              where the pointer says
 *     480, with hooks     512: two words before, two       two words before what the pointer says
 *                         behind (PYTHONMALLOC=debug)
 *
 * Another allocator's block may begin a mapping, so that there is no memory at the place of a header: it is read
 * through the kernel.
 *
 * The fact is proven once.  A program may exchange the allocator later.  So code that writes to headers (pool_pages.c)
 * calls plus_pools_serve() again, and code that takes blocks for good (prefork) reads each pool's header.
 *
 * Rejected: taking blocks until two in a row are of one pool.  In a process that has run for long each of many pools
 * has one free block. */
#include "pools.h"

#include "../facts/probes.h"

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

/* ---- proof ---------------------------------------------------------------------------------------- */

/* The words that PYTHONMALLOC=debug puts before and behind a block. */
#define HOOK_BEFORE_BYTES ((uintptr_t)2 * sizeof(size_t))
#define HOOK_BYTES ((size_t)4 * sizeof(size_t))

bool
plus_pool_read(const void *block, size_t block_bytes, struct plus_pool_header *header)
{
    return plus_read_memory(plus_pool_header_at(plus_pool_of(block)), header, sizeof *header) &&
           plus_pool_has(header, block, block_bytes);
}

/* Give back `block`, which was just taken from a pool with another block in use, and take it again. */
static bool
header_follows(char **block, const struct plus_pool_header *both,
               const struct plus_pool_request *request)
{
    struct plus_pool_header one, again;
    char *begin = *block - request->before;

    /* The pool does not become empty: it stays in the list, and is its first one. */
    PyObject_Free(*block);
    bool follows = plus_pool_read(begin, PLUS_LARGEST_BLOCK, &one) &&
                   one.taken == both->taken - 1 && one.free_block == begin;
    *block = PyObject_Malloc(request->bytes);
    return follows && *block == begin + request->before &&
           plus_pool_read(begin, PLUS_LARGEST_BLOCK, &again) && again.taken == both->taken &&
           again.free_block == both->free_block && again.next_offset == both->next_offset;
}

/* The first block may be the last of its pool, and the second the first one of the next. */
#define TRIED 3

static bool
serves(const struct plus_pool_request *request)
{
    struct plus_pool_header header = {0};
    char *blocks[TRIED];
    bool fits = true;
    int count = 0;

    while (fits && header.taken < 2 && count < TRIED) {
        char *block = blocks[count++] = PyObject_Malloc(request->bytes);
        fits =
            block != NULL && plus_pool_read(block - request->before, PLUS_LARGEST_BLOCK, &header);
    }
    fits = fits && header.taken >= 2 && header_follows(&blocks[count - 1], &header, request);
    while (count > 0) {
        PyObject_Free(blocks[--count]);
    }
    return fits;
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
