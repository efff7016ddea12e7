/* The size of the kernel's pages: 4, 16 or 64 KiB, a power of two.
 *
 * x86-64 has 4 KiB only; on aarch64 it is a choice of the kernel's build.  Any thread, no GIL; async-signal-safe.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

static inline uintptr_t
plus_page_bytes(void)
{
    static _Atomic uintptr_t known; /* 0, or the one value that every thread would write */
    uintptr_t bytes = atomic_load_explicit(&known, memory_order_relaxed);

    if (bytes == 0) {
        bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

/* floor: `address` rounded down to a multiple of the page size. ceiling: rounded up. */
static inline uintptr_t
plus_page_floor(uintptr_t address)
{
    return address & ~(plus_page_bytes() - 1);
}

static inline uintptr_t
plus_page_ceiling(uintptr_t address)
{
    return plus_page_floor(address + plus_page_bytes() - 1);
}
