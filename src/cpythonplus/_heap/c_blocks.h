/* The blocks of glibc's malloc, in a copy of the process. */
#pragma once

#include <stddef.h>

/* Call `visit` for each block in use of at least `least` bytes: in the main heap, in those of threads, and those that
 * malloc maps one by one, from 128 KiB on.  Returns the first non-zero result, else 0.  If a thread was in malloc when
 * the copy was made, blocks of that heap are missing.  malloc must be glibc's.  Mapped blocks are told by their form, so
 * `visit` may also get bytes inside of another block. */
int
plus_c_blocks_visit(size_t least, int (*visit)(const char *block, size_t bytes, void *arg),
                    void *arg);
