/* A request is served from a half-used pool of its size if there is one, else from a fresh one
 * (_interp/objects/pools.h).  So request blocks until one is the only block of its pool. */
#define _GNU_SOURCE
#include "heap.h"

#include <malloc.h>

#include "../../_interp/objects/pools.h"

/* The limit for all calls in a process, for pools and for the C heap separately: a parent that goes on working frees
 * and allocates between two calls, and would lose its holes at each call. */
#define FILL_LIMIT ((Py_ssize_t)64 * 1024 * 1024)

/* Less than this is given back at once: the calls themselves leave that much free memory, which would be taken at each
 * call. */
#define WORTH_FILLING ((Py_ssize_t)256 * 1024)

/* The taken blocks, linked through themselves, so that the leak checker sees them in use.  Guarded by the GIL. */
static void *taken;
static Py_ssize_t taken_bytes;

/* 1: the block is the first of a fresh pool; 0: it is not; -1: it is in no pool. */
static int
is_fresh(void *block, size_t size, uintptr_t *pool)
{
    struct plus_pool_header header;
    uintptr_t own = plus_pool_of(block);

    if (own == *pool) { /* verified, and it had another block already */
        return 0;
    }
    if (!plus_pool_read(block, size, &header)) {
        return -1;
    }
    *pool = own;
    return header.taken == 1u;
}

static Py_ssize_t
fill_size(size_t size, Py_ssize_t limit)
{
    Py_ssize_t filled = 0;
    uintptr_t pool = 0;

    while (filled < limit) {
        void **block = PyObject_Malloc(size);
        if (block == NULL) {
            return filled;
        }
        int fresh = is_fresh(block, size, &pool);
        if (fresh != 0) {
            PyObject_Free(block);
            return fresh < 0 ? -1 : filled;
        }
        *block = taken;
        taken = block;
        filled += (Py_ssize_t)size;
    }
    return filled;
}

static void
give_back(void **list, void *until, void (*release)(void *))
{
    while (*list != until) {
        void *block = *list;

        *list = *(void **)block;
        release(block);
    }
}

Py_ssize_t
plus_pools_fill(void)
{
    void *before = taken;
    Py_ssize_t filled = 0;

    if (plus_fact_refusal(PLUS_FACT_POOLS) != NULL) {
        return -1;
    }
    for (size_t size = PLUS_BLOCK_STEP; size <= PLUS_LARGEST_BLOCK; size += PLUS_BLOCK_STEP) {
        Py_ssize_t more = fill_size(size, FILL_LIMIT - taken_bytes - filled);
        if (more < 0) {
            give_back(&taken, before, PyObject_Free);
            return -1;
        }
        filled += more;
    }
    if (filled < WORTH_FILLING) {
        give_back(&taken, before, PyObject_Free);
        return 0;
    }
    taken_bytes += filled;
    return filled;
}

/* ------------------------------------------------------------------------------------------------
 * The C heap
 */

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33) /* mallinfo2 */

#define LARGEST_GAP ((size_t)96 * 1024) /* below the sizes that malloc maps separately */
#define SMALLEST_GAP ((size_t)24)       /* of C libraries: Python's come from pymalloc's pools */
#define BLOCK_STEP ((size_t)16)
#define LARGEST_CACHED ((size_t)1040) /* a cached block fits one size only */

static void *gaps; /* the taken gaps, linked through themselves */
static Py_ssize_t gaps_bytes;

/* The main heap grows at its top, and free memory below the top is a gap.  Larger gaps come first, for a small request
 * would split them. */
Py_ssize_t
plus_malloc_fill(void)
{
    struct mallinfo2 info = mallinfo2();
    uintptr_t top = (uintptr_t)sbrk(0) - info.keepcost;
    void *before = gaps;
    Py_ssize_t filled = 0;

    for (size_t size = LARGEST_GAP; size >= SMALLEST_GAP;
         size -= size > LARGEST_CACHED ? size / 8 : BLOCK_STEP) {
        for (;;) {
            void **block = malloc(size);

            /* If the block is from the top, or from another arena, there is no such gap any more. */
            if (block == NULL || (uintptr_t)block >= top || gaps_bytes + filled > FILL_LIMIT) {
                free(block);
                break;
            }
            *block = gaps;
            gaps = block;
            filled += (Py_ssize_t)malloc_usable_size(block);
        }
    }
    if (filled < WORTH_FILLING) {
        give_back(&gaps, before, free);
        return 0;
    }
    gaps_bytes += filled;
    return filled;
}

#else

Py_ssize_t
plus_malloc_fill(void)
{
    return 0;
}

#endif
