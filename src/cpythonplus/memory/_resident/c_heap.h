/* The heaps of glibc's malloc, read from outside: chunk after chunk, each with its size in the word in front of it.
 *
 * Nothing here uses Python or needs the GIL.  Other threads may go on allocating.  Their changes can end a walk early;
 * then the caller tries again.  All memory is read through the kernel, so a change cannot cause a fault. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUS_C_HEAP_LAST 128 /* glibc 2.43 keeps 16 of each size in a thread's cache */

/* A chunk that is in use or in a thread's cache, and the free bytes directly below it. */
struct plus_c_heap_chunk {
    uintptr_t start;
    size_t bytes, free_below;
    bool cached;
};

/* The sums of a heap, in bytes that are in memory.  They add up to the resident bytes of the range. */
struct plus_c_heap {
    size_t used;       /* handed out; or in a fastbin, whose chunks look as if in use */
    size_t cached;     /* in some thread's cache: free, but neither merged nor given back */
    size_t free;       /* free between chunks that are in use */
    size_t top;        /* free above the last one */
    size_t returnable; /* whole pages in `free` and `top`, which malloc_trim() gives back */
    size_t chunks;     /* number of chunks that are used or cached */
    /* The last used or cached chunks, which keep the heap from shrinking: number i is last[i % PLUS_C_HEAP_LAST]. */
    struct plus_c_heap_chunk last[PLUS_C_HEAP_LAST];
};

/* True if malloc is glibc's, with the known layout.  `key` gets the word that glibc writes into each chunk of a
 * thread's cache (from 2.34 on the same for all threads of a process); 0 if there is no such cache, or no key. */
bool
plus_c_heap_known(uintptr_t *key);

/* Sums up the heap from `start` to `end`; its first chunk is at `first`.  0; -EAGAIN: met bytes that are no chunk;
 * -ENOMEM. */
int
plus_c_heap_walk(struct plus_c_heap *heap, uintptr_t start, uintptr_t first, uintptr_t end,
                 uintptr_t key);

/* Sums up a heap of another arena than the main one; it begins at a multiple of 64 MiB and ends before `limit`.  `end`
 * gets the heap's end.  0; -ENOENT: there is none at `start`; or as above. */
int
plus_c_heap_walk_thread(struct plus_c_heap *heap, uintptr_t start, uintptr_t limit, uintptr_t key,
                        uintptr_t *end);

/* Returns the bytes of a mapping that begins at the page `start` and holds one large block, of at most `limit` bytes;
 * 0: there is none. */
size_t
plus_c_heap_mapped(uintptr_t start, size_t limit);
