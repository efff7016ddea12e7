/* Work on a copy of the process, while the process goes on. */
#pragma once

#include "../_base/compat.h"

/* Call `work` in a copy of the process, with the GIL; returns the bytes that it returned, as a new bytes object.
 * `pause_ns`: the time for which the program stood still.  NULL with an exception: OSError; RuntimeError if the copy
 * failed, used up `most_bytes` of memory, or took longer than `seconds`.
 *
 * The copy has the descriptors `keep` (two, or -1) and no others, so that the program's files close when the program
 * closes them.
 *
 * In the copy there is no other thread, and no hook of a fork is called.  `work` must take memory only by copy_memory.h
 * or from Python; it must not execute Python code, nor give up the GIL; it returns a new bytes object, or NULL. */
PyObject *
plus_heap_copy(PyObject *(*work)(void *), void *arg, const int keep[2], int seconds,
               size_t most_bytes, uint64_t *pause_ns);

/* Called by `work`, inside the copy: write all bytes to `fd`.  0, or -1. */
int
plus_heap_copy_write(int fd, const void *data, size_t bytes);
