/* This process's own memory, read through the kernel: an invalid address does no harm.
 *
 * Uses process_vm_readv, or a pipe if that is refused, for at most 64 KiB at a time.  Knows nothing of Python; from any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copy `count_bytes`; true if all of them could be read. */
bool
plus_read_memory(uintptr_t address, void *copy, size_t count_bytes);

struct plus_range {
    uintptr_t start;
    size_t count_bytes;
};

#define PLUS_RANGES_AT_ONCE 128

/* Copy several ranges, one behind the other. */
bool
plus_read_ranges(const struct plus_range *ranges, size_t count, void *copy);

/* True if memory can be read at all: with both ways refused no address can be read, even if it is valid. */
bool
plus_memory_is_readable(void);

#define PLUS_MEMORY_UNREADABLE "process_vm_readv and pipe2 are refused here"
