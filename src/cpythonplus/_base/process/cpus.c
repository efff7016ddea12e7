#define _GNU_SOURCE
#include "cpus.h"

#include "clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define RECHECK_NS (UINT64_C(100) * PLUS_NS_PER_MS)

/* Two threads that ask the kernel at once store the same answer. */
static _Atomic uint32_t cpus = 1;
static _Atomic uint64_t read_ns; /* 0: never */

uint32_t
plus_usable_cpus(uint64_t now_ns)
{
    uint64_t before_ns = atomic_load_explicit(&read_ns, memory_order_relaxed);

    if (before_ns == 0 || now_ns - before_ns >= RECHECK_NS) {
        cpu_set_t set;
        /* This fails on machines with more processors than cpu_set_t holds: those have many. */
        bool known = sched_getaffinity(0, sizeof(set), &set) == 0;

        atomic_store_explicit(&cpus, known ? (uint32_t)CPU_COUNT(&set) : (uint32_t)CPU_SETSIZE,
                              memory_order_relaxed);
        atomic_store_explicit(&read_ns, now_ns, memory_order_relaxed);
    }
    return atomic_load_explicit(&cpus, memory_order_relaxed);
}
