/* A loop that sleeps, looks and perhaps trims.
 *
 *     sleep   `interval_ms`, or 50 times as long as the last look took, if that is more
 *     look    has the process used the processor since? is enough free in the heap? is that new since the last trim?
 *     trim    malloc_trim(0), one arena's lock after the other: the program's threads wait for theirs only
 *
 * Starters write `interval_ms` and `worth`, the thread writes `trims`.  Only the thread uses `left`.  The starter
 * clears `left` once in each process (`runs_in`), because a child has its parent's.
 *
 * The thread needs no GIL, and no lock but malloc's inside the C library.  It ends before a fork and is started anew
 * after it, in parent and child.  `left` survives that, so that a program that forks often is not looked at more
 * often.  If the thread does not end in time, it is inside malloc, whose own fork handlers handle its locks.
 *
 * Rejected: malloc_trim() at the end of a request, in the program's time (it takes milliseconds for each 100 MiB);
 * M_TRIM_THRESHOLD, which is about the end of the heap alone; a timer signal, which interrupts system calls. */
#define _GNU_SOURCE
#include "heap_trimmer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "../../_base/memory/page.h"
#include "../../_base/process/clock.h"
#include "../../_base/process/futex.h"
#include "../../_base/process/own_thread.h"
#include "c_allocator.h"

#define STACK_BYTES ((size_t)128 * 1024)
#define PATIENCE_NS PLUS_NS_PER_S /* of a fork; glibc's own fork() waits for the heap, too */
#define PART_OF_TIME 50u          /* looking takes at most 1/50 of a processor */

/* Starters write these, and the thread reads them. */
static _Atomic unsigned interval_ms;
static _Atomic size_t worth;
static pid_t runs_in;           /* the process that `left` belongs to; written by starters */
static _Atomic unsigned trims;  /* written by the thread */
static _Atomic uint32_t orders; /* futex word: the thread sleeps on it */

static uint64_t
cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return plus_timespec_ns(&now);
}

/* Some hundred KiB less exact than smaps_rollup, which walks over all pages. */
static size_t
resident_bytes(void)
{
    char text[128];
    unsigned long long total, resident;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    if (sscanf(text, "%llu %llu", &total, &resident) != 2) {
        return 0;
    }
    return (size_t)resident * plus_page_bytes();
}

/* State of the last look, used by the thread only.  All zero: the first look decides by the heap alone. */
static struct left {
    size_t resident; /* the least since the last trim */
    size_t free;     /* the least free bytes of the heap since then, mostly without memory */
    uint64_t cpu_ns; /* used by the process */
    uint64_t rests_until_ns; /* also holds for a thread that is started after a fork */
} left;

/* Resident memory alone is not enough: if a trim came in the middle, memory that is freed later does not raise it.
 * The heap's free bytes alone are not enough: if all was used and freed between two looks, their number is the same. */
static bool
is_worth_it(size_t resident, size_t free_bytes)
{
    size_t least = atomic_load(&worth);

    left.resident = resident < left.resident ? resident : left.resident;
    left.free = free_bytes < left.free ? free_bytes : left.free;
    return free_bytes >= least &&
           (resident - left.resident >= least || free_bytes - left.free >= least);
}

static void
look(void)
{
    uint64_t now_ns = cpu_ns();

    if (now_ns - left.cpu_ns < PLUS_NS_PER_MS) { /* the process sleeps: it has freed nothing */
        return;
    }
    size_t free_bytes = plus_c_allocator_free_bytes(PLUS_C_ALLOCATOR_GLIBC);
    if (is_worth_it(resident_bytes(), free_bytes)) {
        plus_c_allocator_release(PLUS_C_ALLOCATOR_GLIBC);
        left.resident = resident_bytes();
        left.free = free_bytes;
        atomic_fetch_add(&trims, 1);
    }
    left.cpu_ns = cpu_ns();
}

static void
run(struct plus_own_thread *self)
{
    for (;;) {
        uint32_t seen = atomic_load(&orders);
        uint64_t began = plus_now_ns();

        if (plus_own_thread_is_to_end(self)) {
            return;
        }
        if (began < left.rests_until_ns) {
            (void)plus_futex_wait(&orders, seen, left.rests_until_ns);
            continue;
        }
        look();
        uint64_t now = plus_now_ns(), rest = (now - began) * PART_OF_TIME;
        uint64_t interval = atomic_load(&interval_ms) * PLUS_NS_PER_MS;
        left.rests_until_ns = now + (rest > interval ? rest : interval);
    }
}

static void
order(void)
{
    atomic_fetch_add(&orders, 1);
    plus_futex_wake(&orders, 1);
}

static struct plus_own_thread thread = {
    .name = "malloc-trim", .run = run, .wake = order, .stack_bytes = STACK_BYTES};

int
plus_heap_trimmer_start(unsigned interval, size_t worth_bytes)
{
    if (plus_c_allocator_kind() != PLUS_C_ALLOCATOR_GLIBC) {
        return -ENOTSUP;
    }
    atomic_store(&interval_ms, interval);
    atomic_store(&worth, worth_bytes);
    if (runs_in != getpid()) {
        runs_in = getpid();
        left = (struct left){0};
        atomic_store(&trims, 0);
    }
    return plus_own_thread_start(&thread);
}

int
plus_heap_trimmer_resume(void)
{
    unsigned interval = atomic_load(&interval_ms);

    return interval != 0 ? plus_heap_trimmer_start(interval, atomic_load(&worth)) : 0;
}

void
plus_heap_trimmer_pause(void)
{
    (void)plus_own_thread_end(&thread, PATIENCE_NS);
}

unsigned
plus_heap_trimmer_count(void)
{
    return atomic_load(&trims);
}
