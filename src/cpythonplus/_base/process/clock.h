/* Monotonic time in nanoseconds.
 *
 * CLOCK_MONOTONIC, because the interpreter's own condition variables use it: a dead line computed by
 * CPython and a time read here can be compared.  Reading costs about 20 ns through the vDSO; the time
 * stamp counter would cost 9, but needs calibration and is not safe on every multi-socket machine.
 *
 * Define _GNU_SOURCE or include Python.h before this header: musl declares no clocks otherwise.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define PLUS_NS_PER_US UINT64_C(1000)
#define PLUS_NS_PER_MS UINT64_C(1000000)
#define PLUS_NS_PER_S UINT64_C(1000000000)

static inline uint64_t
plus_timespec_ns(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * PLUS_NS_PER_S + (uint64_t)ts->tv_nsec;
}

/* Never fails on Linux; may be called with or without the GIL, also in a forked child. */
static inline uint64_t
plus_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return plus_timespec_ns(&ts);
}

/* The time of CLOCK_MONOTONIC at the kernel's last tick, 1 to 10 ms ago.  A call costs a quarter of plus_now_ns(). */
static inline uint64_t
plus_now_coarse_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return plus_timespec_ns(&ts);
}
