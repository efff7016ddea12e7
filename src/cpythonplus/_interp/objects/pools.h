/* pymalloc's pools: blocks of one size are in a pool, 16 KiB that begin at a multiple of 16 KiB with a header, which
 * counts the blocks in use.  (Objects/obmalloc.c, 'pool_header'; the same from 3.11 to 3.15.) Pools change only while a
 * thread holds the GIL. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/own_memory.h"
#include "../facts/facts.h"

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

/* The address to read the header of a pool at. */
static inline uintptr_t
plus_pool_header_at(uintptr_t pool)
{
    return PLUS_AT(PLUS_FACT_POOLS, pool);
}

/* The bytes of each block of the pool. */
static inline size_t
plus_pool_block_bytes(const struct plus_pool_header *header)
{
    return ((size_t)header->size_index + 1) * PLUS_BLOCK_STEP;
}

/* The number of blocks that fit into the pool. */
static inline size_t
plus_pool_blocks(const struct plus_pool_header *header)
{
    return (PLUS_POOL_BYTES - sizeof(*header)) / plus_pool_block_bytes(header);
}

/* True if it can be the header of a pool with at least one block in use. */
static inline bool
plus_pool_is_used(const struct plus_pool_header *header)
{
    return header->size_index < PLUS_LARGEST_BLOCK / PLUS_BLOCK_STEP && header->taken >= 1u &&
           header->taken <= plus_pool_blocks(header) &&
           header->last_offset == PLUS_POOL_BYTES - plus_pool_block_bytes(header);
}

/* True if it is the header of a pool with blocks of `block_bytes`, one of which is `block`. */
static inline bool
plus_pool_has(const struct plus_pool_header *header, const void *block, size_t block_bytes)
{
    size_t offset = (uintptr_t)block - plus_pool_of(block);

    return plus_pool_is_used(header) && plus_pool_block_bytes(header) == block_bytes &&
           offset >= sizeof *header && (offset - sizeof *header) % block_bytes == 0;
}

/* Copy the header of the pool of `block`; false if `block` is no block of `block_bytes` in a pool.  Read through the
 * kernel, since another allocator's block may begin a mapping. */
bool
plus_pool_read(const void *block, size_t block_bytes, struct plus_pool_header *header);

/* The size to request from PyObject_Malloc for a block of PLUS_LARGEST_BLOCK; PYTHONMALLOC=debug adds to it. */
struct plus_pool_request {
    size_t bytes;
    uintptr_t before; /* bytes of the block before the returned pointer */
};

/* True if at this moment objects come from pools with the known layout: the program may exchange the allocator.  Takes
 * some blocks, and gives them back. */
bool
plus_pools_serve(struct plus_pool_request *request);

#define PLUS_POOLS_AT_ONCE PLUS_RANGES_AT_ONCE

/* Copy the headers of up to PLUS_POOLS_AT_ONCE consecutive pools. */
bool
plus_read_pools(uintptr_t first, struct plus_pool_header *headers, size_t count);
