/* The heaps of glibc's malloc, read from outside: chunk after chunk, each with its size in the word in front of it.
 *
 * Knows nothing of Python and needs no GIL.  Other threads may go on allocating: what they change meanwhile can end a
 * walk early, and then the caller tries again.  Everything is read through the kernel, so nothing is harmed. */
#ifndef PLUS_MEMORY_C_HEAP_H
#define PLUS_MEMORY_C_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUS_C_HEAP_LAST 128 /* glibc 2.43 keeps 16 of each size in a thread's cache */

/* A chunk that is in use or in a thread's cache, and what is free directly below it. */
struct plus_c_heap_chunk {
    uintptr_t start;
    size_t bytes, free_below;
    bool cached;
};

/* All in bytes that are in memory; together they are what of the range is. */
struct plus_c_heap {
    size_t used; /* handed out, or in a fastbin, which cannot be told apart */
    size_t
        cached; /* in the cache of some thread: free, but neither merged with others nor given back */
    size_t free;       /* between chunks that are in use */
    size_t top;        /* above the last one */
    size_t returnable; /* whole pages in `free` and `top`: what malloc_trim() gives back */
    size_t chunks;     /* that are used or cached */
    /* The last of these, which keep the heap from shrinking: the one number i is last[i % PLUS_C_HEAP_LAST]. */
    struct plus_c_heap_chunk last[PLUS_C_HEAP_LAST];
};

/* Whether malloc is glibc's, and its heaps are as they are known to be; `key` gets what
 * glibc writes into each chunk of a thread's cache (from 2.34 on the same for all threads of a process), 0 if there is
 * no such cache, or no key to know it by. */
bool
plus_c_heap_known(uintptr_t *key);

/* Splits the heap that lies from `start` to `end`, the first chunk at `first`.  0; -EAGAIN: what was met is no
 * chunk; -ENOMEM. */
int
plus_c_heap_walk(struct plus_c_heap *heap, uintptr_t start, uintptr_t first, uintptr_t end,
                 uintptr_t key);

/* A heap of another arena than the main one: begins at a multiple of 64 MiB.  `end` gets where it ends if there
 * is one at `start`; nothing beyond `limit` is.  0; -ENOENT: there is none; as above. */
int
plus_c_heap_walk_thread(struct plus_c_heap *heap, uintptr_t start, uintptr_t limit, uintptr_t key,
                        uintptr_t *end);

/* Bytes of the mapping that begins at the page `start` and holds one large block, of at most `limit` bytes; 0: it is
 * none. */
size_t
plus_c_heap_mapped(uintptr_t start, size_t limit);

#endif
