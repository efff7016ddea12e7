/* Work on a copy of the process, while the process goes on. */
#ifndef PLUS_MEMORY_HEAP_COPY_H
#define PLUS_MEMORY_HEAP_COPY_H

#include "../_base/compat.h"

/* Calls `work` in a copy of the process, with the GIL, and gives the bytes that this returned: a new bytes object.
 * `pause_ns`: how long the program stood still for it.  NULL with an exception: OSError; RuntimeError, the copy has
 * failed, has used up `most_bytes` of memory, or took longer than `seconds`.
 *
 * The copy has the descriptors `keep` (two, or -1) and no others: what the program closes meanwhile is closed.
 *
 * In the copy there is no other thread, and no hook of a fork is called.  `work` must take memory by copy_memory.h or from
 * Python alone; it must not execute Python code, nor let the GIL go; it returns a new bytes
 * object, or NULL. */
PyObject *
plus_heap_copy(PyObject *(*work)(void *), void *arg, const int keep[2], int seconds,
               size_t most_bytes, uint64_t *pause_ns);

/* In the copy: writes all of it.  0, or -1. */
int
plus_heap_copy_write(int fd, const void *data, size_t bytes);

#endif
