/* Sleeping on a 32-bit word until another thread changes it: Linux futex(2), process-private.
 *
 * Knows nothing of Python.  No function releases or takes the GIL: a caller that must not block other Python threads
 * releases it first.  A futex has no state beyond its word, so fork needs no care.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum plus_futex_result {
    /* Woken, interrupted by a signal, or the word had another value: check again. */
    PLUS_FUTEX_WOKEN,
    PLUS_FUTEX_TIMED_OUT, /* the deadline passed */
};

#define PLUS_FUTEX_NO_DEADLINE UINT64_MAX

/* Sleep while *word == expected, at most until deadline_ns on CLOCK_MONOTONIC (PLUS_FUTEX_NO_DEADLINE: without limit).
 * May return early without a reason. */
enum plus_futex_result
plus_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);

/* Poll *word while it equals `value`, for at most about limit_ns.  True if it changed: then data that was written
 * before it can be read. */
bool
plus_futex_poll(const _Atomic uint32_t *word, uint32_t value, uint64_t limit_ns);

/* Wake at most `count` sleepers. */
void
plus_futex_wake(_Atomic uint32_t *word, int count);

/* Tell the processor that this is a polling loop. */
static inline void
plus_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::
                             : "memory"); /* `yield` is a no-op on most cores; isb really waits */
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}
