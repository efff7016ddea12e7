/* The number of processors that this process may use, and their cache line.  Knows nothing of Python. */
#pragma once

#include <stdint.h>

/* The bytes that move from one processor to another together (x86-64, aarch64). */
#define PLUS_CACHE_LINE 64

/* The processors of the affinity mask, at least 1.  The kernel is asked at most once in 100 ms of the caller's time
 * (plus_now_ns): a running process may be pinned. */
uint32_t
plus_usable_cpus(uint64_t now_ns);
