/* The processors: how many this process may use, and what they share; nothing here knows of Python. */
#ifndef PLUS_BASE_CPUS_H
#define PLUS_BASE_CPUS_H

#include <stdint.h>

/* Bytes that go from one processor to another together (x86-64, aarch64). */
#define PLUS_CACHE_LINE 64

/* Processors of the affinity mask, at least 1.  The kernel is asked at most once in 100 ms, by the
 * clock that the caller read (plus_now_ns): somebody may pin a running process. */
uint32_t
plus_usable_cpus(uint64_t now_ns);

#endif
