/* The C library's heap, or that of an allocator that replaces it: giving its free memory back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum plus_c_allocator_kind {
    PLUS_C_ALLOCATOR_GLIBC,
    PLUS_C_ALLOCATOR_JEMALLOC,
    PLUS_C_ALLOCATOR_MIMALLOC,
    PLUS_C_ALLOCATOR_TCMALLOC,
    PLUS_C_ALLOCATOR_OTHER, /* musl's, a sanitizer's: has no call that gives memory back */
};

/* Returns the kind of malloc().  The first call looks up symbols, and must be made with the GIL held: it takes the
 * dynamic linker's lock, which would stay locked in the child of a fork meanwhile; Python forks with the GIL.  Later
 * calls read one word, from any thread. */
enum plus_c_allocator_kind
plus_c_allocator_kind(void);

/* Makes the allocator give free memory back to the kernel.  Returns whether the allocator has a call for that.  May
 * take milliseconds for each 100 MiB, with the heap's locks held one after the other: call it without the GIL.  Any
 * thread; `kind` must come from plus_c_allocator_kind(). */
bool
plus_c_allocator_release(enum plus_c_allocator_kind kind);

/* Returns the bytes that are free between blocks in use; a release does not change them.  0 if unknown (not glibc, or
 * before 2.33).  Most of them may have no memory any more: after a release only parts of pages have. */
size_t
plus_c_allocator_free_bytes(enum plus_c_allocator_kind kind);

/* Returns the bytes that malloc has handed out; -1 if unknown, as above. */
long long
plus_c_allocator_used_bytes(enum plus_c_allocator_kind kind);

/* Returns the name of an allocator that replaces the C library's, and its bytes in use and in memory, as it tells
 * them; 0 and 0 if it does not tell.  NULL: there is no known one.  Called like plus_c_allocator_kind(). */
const char *
plus_c_allocator_ask(size_t *used_bytes, size_t *resident_bytes);
