/* malloc() and its like, also for a copy of the process.
 *
 * A copy has the memory of all threads, but only the thread that made it: another thread may have been inside malloc(),
 * and its lock is then never released.  So a copy calls plus_copy_memory_begin() first; afterwards these functions take
 * memory from a region of the copy's own.  Before, and in the program itself, they are malloc(), calloc(), realloc()
 * and free().
 *
 * Knows nothing of Python.  In a copy: for its one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reserve `most_bytes` of addresses, or fewer if the kernel refuses that many.  0, or -ENOMEM. */
int
plus_copy_memory_begin(size_t most_bytes);

void *
plus_malloc(size_t bytes);

/* All zero. */
void *
plus_calloc(size_t count, size_t item_bytes);

/* In a copy, returns NULL for a block that was allocated before the copy: its size is unknown. */
void *
plus_realloc(void *block, size_t bytes);

/* Make room for one more item in a block with room for `*room` items, `count` of them used: `first` items, then twice
 * as many.  Returns the block, which may have moved; NULL without memory, and the block is unchanged. */
static inline void *
plus_room_for_one(void *block, size_t count, size_t *room, size_t first, size_t item_bytes)
{
    if (count < *room) {
        return block;
    }
    size_t more = *room > 0 ? 2 * *room : first;
    void *larger = plus_realloc(block, more * item_bytes);

    if (larger != NULL) {
        *room = more;
    }
    return larger;
}

/* In a copy, does nothing for a block that was allocated before the copy. */
void
plus_free(void *block);

/* Sort by the first word of each item.  Why not qsort(): it calls malloc() for more than a few items. */
void
plus_sort_by_word(void *items, size_t count, size_t item_bytes);
