/* Empty pools are found by requesting blocks.  The heads of pymalloc's lists are private, and memory that looks like a
 * pool may be other data.  But if no half-used pool of a size is left, a request of that size gets the first block of
 * an empty pool in each version.  The arena allocator (which has a public setter) refuses new arenas meanwhile, so the
 * requests go on until no empty pool is left.  So only memory of blocks that pymalloc gave to this function is changed.
 *
 *     1. take     one block of each empty pool; then its header says that it has one more and none behind that,
 *                 which the second request takes: full by two blocks, without a touch of its other pages
 *     2. free     both: the pool is empty again and in its arena's list; empty arenas wait for step 4
 *     3. forget   szidx says that the pool was never carved, as in a new arena: obmalloc carves it anew, so
 *                 nothing reads what stood behind the header, and the pages behind the first one can go
 *     4. unmap    the arenas that waited
 *
 * Rejected: writing to the arenas' own records (they can be found only by symbols that differ from version to version),
 * and giving the first page back as well (it holds the link to the next empty pool).  After Objects/obmalloc.c, `struct
 * pool_header`, allocate_from_new_pool() and insert_to_freepool(), 3.11 to 3.15. */
#define _GNU_SOURCE
#include "pool_pages.h"

#include <sys/mman.h>

#include "../../_base/memory/copy_memory.h"
#include "../../_base/memory/page.h"
#include "pools.h"

/* The largest size: the fewest blocks of half-used pools have to be taken. */
#define BLOCK_BYTES PLUS_LARGEST_BLOCK
#define SIZE_INDEX (BLOCK_BYTES / PLUS_BLOCK_STEP - 1u)
#define NEVER_CARVED 0xffffu
#define FIRST_BLOCK sizeof(struct plus_pool_header)

/* The state of one call. */
struct taking {
    struct plus_pool_request request;
    void **half_used; /* blocks of pools that were not empty, linked through themselves */
    struct taken {
        struct plus_pool_header *pool;
        void *blocks[2];
    } *list; /* the pools that were empty */
    size_t count, room;
};

/* ------------------------------------------------------------------------------------------------ The arena allocator
 * during a call.  Guarded by the GIL; an interpreter with a GIL of its own calls these functions too, and `working`
 * leads it to the real allocator.
 */
static PyObjectArenaAllocator real;
static _Thread_local bool working;
static bool refused;
static void **waiting; /* arenas to be unmapped, linked through their first word */
static size_t arena_bytes, waiting_count;

static void *
refuse_arena(void *context, size_t size)
{
    if (!working) {
        return real.alloc(context, size);
    }
    refused = true;
    return NULL;
}

/* A pool of this arena may still be in the list of this call, so the memory is kept until its end. */
static void
keep_arena(void *context, void *address, size_t size)
{
    if (!working) {
        real.free(context, address, size);
        return;
    }
    *(void **)address = waiting;
    waiting = address;
    arena_bytes = size;
    waiting_count++;
}

static void
arenas_begin(void)
{
    PyObject_GetArenaAllocator(&real);
    PyObjectArenaAllocator own = {real.ctx, refuse_arena, keep_arena};
    refused = false;
    waiting_count = 0;
    working = true;
    PyObject_SetArenaAllocator(&own);
}

static void
arenas_end(void)
{
    PyObject_SetArenaAllocator(&real);
    working = false;
    while (waiting != NULL) {
        void **arena = waiting;

        waiting = *arena;
        real.free(real.ctx, arena, arena_bytes);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Pools
 */

static struct plus_pool_header *
pool_of(const void *block)
{
    return (struct plus_pool_header *)plus_pool_header_at(plus_pool_of(block));
}

static bool
make_room(struct taking *this)
{
    struct taken *list =
        plus_room_for_one(this->list, this->count, &this->room, 1024, sizeof *list);
    if (list != NULL) {
        this->list = list;
    }
    return list != NULL;
}

/* Only block `first` of the pool is taken.  Make the next request take a second one, and be the pool's last. */
static void *
take_second(struct taking *this, struct plus_pool_header *pool, void *first)
{
    void **second = (void **)((char *)pool + FIRST_BLOCK);

    if ((char *)second == (char *)first - this->request.before) {
        second = (void **)((char *)second + BLOCK_BYTES);
    }
    *second = NULL;
    pool->free_block = second;
    pool->next_offset =
        (uint32_t)PLUS_POOL_BYTES; /* beyond last_offset: no more blocks are carved */
    return PyObject_Malloc(this->request.bytes);
}

/* Take all free blocks of half-used pools of the size, then all empty pools. */
static void
take(struct taking *this)
{
    while (make_room(this)) {
        void **block = PyObject_Malloc(this->request.bytes);

        /* If an arena was refused, the block is from malloc and not from a pool. */
        if (block == NULL || refused ||
            !plus_pool_has(pool_of(block), (char *)block - this->request.before, BLOCK_BYTES)) {
            PyObject_Free(block);
            return;
        }
        struct plus_pool_header *pool = pool_of(block);
        if (pool->taken > 1) {
            *block = this->half_used;
            this->half_used = block;
            continue;
        }
        this->list[this->count++] =
            (struct taken){.pool = pool, .blocks = {block, take_second(this, pool, block)}};
    }
}

static void
free_all(struct taking *this)
{
    while (this->half_used != NULL) {
        void **block = this->half_used;

        this->half_used = *block;
        PyObject_Free(block);
    }
    for (size_t i = 0; i < this->count; i++) {
        PyObject_Free(this->list[i].blocks[0]);
        PyObject_Free(this->list[i].blocks[1]);
    }
}

/* Every pool is still mapped: keep_arena() has kept its arena. */
static size_t
release_pages(const struct taking *this, size_t page_bytes)
{
    size_t released = 0;

    for (size_t i = 0; i < this->count; i++) {
        struct plus_pool_header *pool = this->list[i].pool;

        if (pool->taken != 0 || pool->size_index != SIZE_INDEX) {
            continue;
        }
        pool->size_index = NEVER_CARVED;
        if (madvise((char *)pool + page_bytes, PLUS_POOL_BYTES - page_bytes, MADV_DONTNEED) == 0) {
            released++;
        }
    }
    return released;
}

enum plus_pool_pages_result
plus_pool_pages_release(struct plus_pool_pages *done)
{
    struct taking taking = {0};
    size_t page_bytes = plus_page_bytes();

    *done = (struct plus_pool_pages){0};
    if (page_bytes >= PLUS_POOL_BYTES) {
        return PLUS_POOL_PAGES_LARGE_PAGES;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return PLUS_POOL_PAGES_OTHERS;
    }
    if (!plus_memory_is_readable()) {
        return PLUS_POOL_PAGES_UNREADABLE;
    }
    if (plus_fact_refusal(PLUS_FACT_POOLS) != NULL || !plus_pools_serve(&taking.request)) {
        return PLUS_POOL_PAGES_NO_POOLS;
    }
    arenas_begin();
    take(&taking);
    free_all(&taking);
    size_t released = release_pages(&taking, page_bytes);
    size_t unmapped = waiting_count;
    arenas_end();
    plus_free(taking.list);
    *done = (struct plus_pool_pages){.pools = released, .arenas = unmapped};
    return PLUS_POOL_PAGES_DONE;
}
