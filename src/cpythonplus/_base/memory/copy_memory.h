/* malloc() and its like, also for a copy of the process.
 *
 * A copy has the memory of all threads, but only the one that made it: another one may have been in the middle of malloc(),
 * and its lock is then never given back.  So a copy calls plus_copy_memory_begin() first; after it these functions take from a
 * region of the copy's own.  Before it, and in the program itself, they are malloc(), calloc(), realloc() and free().
 *
 * Knows nothing of Python.  In a copy: for its one thread. */
#ifndef PLUS_BASE_COPY_MEMORY_H
#define PLUS_BASE_COPY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Takes `most_bytes` of addresses, or fewer if the kernel does not give so many.  0, or -ENOMEM. */
int
plus_copy_memory_begin(size_t most_bytes);

void *
plus_malloc(size_t bytes);

/* All zero. */
void *
plus_calloc(size_t count, size_t item_bytes);

/* In a copy NULL for what was allocated before it: its size is known to nobody. */
void *
plus_realloc(void *block, size_t bytes);

/* Room for one more item in a block that holds `*room`, of which `count` are there: `first` items, then twice as many.
 * The block, which may have moved; NULL: no memory, and it is as it was. */
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

/* In a copy nothing happens to what was allocated before it. */
void
plus_free(void *block);

/* Sorts by the word that each item begins with.  Why not qsort(): it calls malloc() for more than a few items. */
void
plus_sort_by_word(void *items, size_t count, size_t item_bytes);

#endif
