/* This process's own memory, read through the kernel: whatever the address is, nothing is harmed.
 *
 * By process_vm_readv, or a pipe where that is refused: of at most 64 KiB at a time.  Knows nothing of Python; from any thread. */
#ifndef PLUS_BASE_OWN_MEMORY_H
#define PLUS_BASE_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `count_bytes`.  Whether all of it was there. */
bool
plus_read_memory(uintptr_t address, void *copy, size_t count_bytes);

struct plus_range {
    uintptr_t start;
    size_t count_bytes;
};

#define PLUS_RANGES_AT_ONCE 128

/* The same of several, one behind the other. */
bool
plus_read_ranges(const struct plus_range *ranges, size_t count, void *copy);

/* Whether any of it can be read: with both ways refused, no address can, which says nothing about what lies there. */
bool
plus_memory_is_readable(void);

#define PLUS_MEMORY_UNREADABLE "process_vm_readv and pipe2 are refused here"

#endif
