/* Sleeping: the kernel compares the word with `expected` and queues the thread in one step, so a waker that changes the
 * word first and wakes afterwards is not missed.  Being woken proves nothing: signals and unrelated wakes end a sleep
 * as well, so callers loop over their own condition.
 *
 * Waking: a waker may come too late for the memory.  A sleeper that woke by itself, at its deadline for example, may
 * have freed the word or ended its stack by then.  The kernel's errors for that (EFAULT, or EINVAL for the memory's new
 * contents) mean that no sleeper is left; if another thread sleeps at that address, a stray wake is harmless, see
 * above.
 *
 * Any other error means that a call is malformed or memory is gone under a sleeper: sleeping on would hang the process
 * silently, so it ends with a message instead.
 *
 * Polling is for words that change within microseconds: the clock is read once in eight polls.
 */
#define _GNU_SOURCE
#include "futex.h"

#include "clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All other errors mean that the word's memory is gone or the call is malformed: sleeping on would hang the process
 * silently, so it ends with a message instead. */
static void
die(const char *call, int error)
{
    fprintf(stderr, "cpythonplus: %s failed with errno %d\n", call, error);
    abort();
}

enum plus_futex_result
plus_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline;
    struct timespec *limit = NULL;

    if (deadline_ns != PLUS_FUTEX_NO_DEADLINE) {
        deadline.tv_sec = (time_t)(deadline_ns / PLUS_NS_PER_S);
        deadline.tv_nsec = (long)(deadline_ns % PLUS_NS_PER_S);
        limit = &deadline;
    }
    /* FUTEX_WAIT_BITSET takes an absolute time on CLOCK_MONOTONIC; plain FUTEX_WAIT a relative one. */
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, limit,
                      NULL, FUTEX_BITSET_MATCH_ANY);
    if (rc == 0) {
        return PLUS_FUTEX_WOKEN;
    }
    switch (errno) {
    case EAGAIN:
    case EINTR:
        return PLUS_FUTEX_WOKEN;
    case ETIMEDOUT:
        return PLUS_FUTEX_TIMED_OUT;
    default:
        die("futex(FUTEX_WAIT_BITSET)", errno);
        return PLUS_FUTEX_WOKEN;
    }
}

bool
plus_futex_poll(const _Atomic uint32_t *word, uint32_t value, uint64_t limit_ns)
{
    uint64_t start = plus_now_ns();

    do {
        for (int i = 0; i < 8; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) {
                return true;
            }
            plus_cpu_relax();
        }
    } while (plus_now_ns() - start < limit_ns);
    return false;
}

void
plus_futex_wake(_Atomic uint32_t *word, int count)
{
    long rc = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);

    /* EFAULT: the sleeper woke by itself and its memory is gone; no sleeper is left.  EINVAL: the memory is now used
     * for a mutex with priority inheritance that has waiters. */
    if (rc < 0 && errno != EFAULT && errno != EINVAL) {
        die("futex(FUTEX_WAKE)", errno);
    }
}
