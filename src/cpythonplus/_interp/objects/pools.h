/* pymalloc, as far as it has to be known from outside: blocks of one size lie in a pool, 16 KiB that begin at a
 * multiple of 16 KiB with a header, which counts the blocks that are taken.  (Objects/obmalloc.c, 'pool_header'; the
 * same from 3.11 to 3.15.)  Pools change only while somebody has the GIL. */
#ifndef PLUS_INTERP_POOLS_H
#define PLUS_INTERP_POOLS_H

#include "../../_base/memory/own_memory.h"
#include "../facts/facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUS_POOL_BYTES ((uintptr_t)16 * 1024)
#define PLUS_BLOCK_STEP 16u
#define PLUS_LARGEST_BLOCK 512u

struct plus_pool_header {
    uint32_t taken;
    uint32_t padding;
    void *free_block, *next, *prev;
    uint32_t arena;
    uint32_t size_index;
    uint32_t next_offset, last_offset;
};

static inline uintptr_t
plus_pool_of(const void *address)
{
    return (uintptr_t)address & ~(PLUS_POOL_BYTES - 1);
}

/* Where the header of a pool is read. */
static inline uintptr_t
plus_pool_header_at(uintptr_t pool)
{
    return PLUS_AT(PLUS_FACT_POOLS, pool);
}

/* Bytes of each block of the pool. */
static inline size_t
plus_pool_block_bytes(const struct plus_pool_header *header)
{
    return ((size_t)header->size_index + 1) * PLUS_BLOCK_STEP;
}

/* Blocks that fit into the pool. */
static inline size_t
plus_pool_blocks(const struct plus_pool_header *header)
{
    return (PLUS_POOL_BYTES - sizeof(*header)) / plus_pool_block_bytes(header);
}

/* Whether it can be the header of a pool at least one of whose blocks is taken. */
static inline bool
plus_pool_is_used(const struct plus_pool_header *header)
{
    return header->size_index < PLUS_LARGEST_BLOCK / PLUS_BLOCK_STEP && header->taken >= 1u &&
           header->taken <= plus_pool_blocks(header) &&
           header->last_offset == PLUS_POOL_BYTES - plus_pool_block_bytes(header);
}

/* Whether it is the header of a pool of blocks of `block_bytes` that `block` is one of. */
static inline bool
plus_pool_has(const struct plus_pool_header *header, const void *block, size_t block_bytes)
{
    size_t offset = (uintptr_t)block - plus_pool_of(block);

    return plus_pool_is_used(header) && plus_pool_block_bytes(header) == block_bytes &&
           offset >= sizeof *header && (offset - sizeof *header) % block_bytes == 0;
}

/* Copies the header of the pool of blocks of `block_bytes` that `block` is one of; false: it is not. Through the kernel,
 * since what another allocator gave out may lie at the beginning of a mapping. */
bool
plus_pool_read(const void *block, size_t block_bytes, struct plus_pool_header *header);

/* What to ask PyObject_Malloc for, so that blocks of PLUS_LARGEST_BLOCK come; PYTHONMALLOC=debug asks for more. */
struct plus_pool_request {
    size_t bytes;
    uintptr_t before; /* bytes of such a block in front of what is handed out */
};

/* Whether objects come from pools as they are known here, at this moment: the program may exchange the allocator.  Takes
 * some blocks, and gives them back. */
bool
plus_pools_serve(struct plus_pool_request *request);

#define PLUS_POOLS_AT_ONCE PLUS_RANGES_AT_ONCE

/* Copies the headers of up to PLUS_POOLS_AT_ONCE pools that follow each other. */
bool
plus_read_pools(uintptr_t first, struct plus_pool_header *headers, size_t count);

#endif
