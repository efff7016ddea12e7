/* The C library's heap, or that of an allocator which was loaded in its place: giving back what is free in it. */
#ifndef PLUS_MEMORY_C_ALLOCATOR_H
#define PLUS_MEMORY_C_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

enum plus_c_allocator_kind {
    PLUS_C_ALLOCATOR_GLIBC,
    PLUS_C_ALLOCATOR_JEMALLOC,
    PLUS_C_ALLOCATOR_MIMALLOC,
    PLUS_C_ALLOCATOR_TCMALLOC,
    PLUS_C_ALLOCATOR_OTHER, /* musl, a sanitizer's: none that can be told to give anything back */
};

/* Which allocator malloc() is.  The first call looks for symbols, and must be made with the GIL held: that takes
 * the dynamic linker's lock, which stays locked in the child of a fork meanwhile; Python forks with the GIL.  All
 * later calls read one word, from any thread. */
enum plus_c_allocator_kind
plus_c_allocator_kind(void);

/* Has it give free memory back to the kernel.  Returns whether it was told to.  May take milliseconds for each
 * 100 MiB, with the heap's locks held one after the other: call it without the GIL.  Any thread; `kind` must come
 * from plus_c_allocator_kind(). */
bool
plus_c_allocator_release(enum plus_c_allocator_kind kind);

/* Bytes that are free between blocks in use, and go on being so; 0 where it cannot be told (not glibc, or before
 * 2.33).  Most of them may have no memory any more: after a release only parts of pages have. */
size_t
plus_c_allocator_free_bytes(enum plus_c_allocator_kind kind);

/* Bytes that it has handed out; -1 where it cannot be told, as above. */
long long
plus_c_allocator_used_bytes(enum plus_c_allocator_kind kind);

/* The name of an allocator that was loaded instead of the C library's, and what it says of itself: bytes in use and in
 * memory, 0 and 0 where it does not tell.  NULL: there is none that is known.  As plus_c_allocator_kind(). */
const char *
plus_c_allocator_ask(size_t *used_bytes, size_t *resident_bytes);

#endif
