/* A loop that sleeps, looks and perhaps trims; it ends with the process.
 *
 *     sleep   `interval_ms`, or 50 times as long as the last look took, if that is more
 *     look    has the process used the processor since?  is enough free in the heap?  is that new since the last trim?
 *     trim    malloc_trim(0), one arena's lock after the other: the program's threads wait for theirs only
 *
 * Numbers go one way: starters write `interval_ms` and `worth`, the thread writes `trims`.  What the last look left is
 * its own.  `owner` is the process that has the thread.  Who changes it from another value to its own starts the thread:
 * so of two starters one does; and a forked child, where the number is the parent's, may have its own.  If the thread
 * cannot be started, nobody has it.
 *
 * The thread holds no GIL, no lock but malloc's inside the C library, and blocks all signals: they are the program's.  A
 * fork meets it asleep, reading, or inside malloc, whose own fork handlers see to its locks.
 *
 * Rejected: malloc_trim() at the end of a request, in the program's time (it takes milliseconds for each 100 MiB);
 * M_TRIM_THRESHOLD, which is about the end of the heap alone; a timer signal, which interrupts system calls. */
#define _GNU_SOURCE
#include "heap_trimmer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "../_base/clock.h"
#include "../_base/page.h"
#include "c_allocator.h"

#define STACK_BYTES ((size_t)128 * 1024)
#define PART_OF_TIME 50u /* at most 1/50 of a processor is spent on looking */

/* Written by starters, read by the thread. */
static _Atomic unsigned interval_ms;
static _Atomic size_t worth;
/* Of the process that has the thread: another one, after a fork, has none.  By whoever starts it. */
static _Atomic pid_t owner;
static _Atomic unsigned trims; /* by the thread */

static uint64_t
cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return plus_timespec_ns(&now);
}

static void
sleep_ns(uint64_t ns)
{
    struct timespec length = {(time_t)(ns / PLUS_NS_PER_S), (long)(ns % PLUS_NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &length, &length) == EINTR) {
    }
}

/* A few hundred KiB less exact than smaps_rollup, which walks over all pages. */
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

/* What the last look left; the thread's own. */
struct left {
    size_t resident; /* the least since the last trim */
    size_t free;     /* in the heap, likewise: most of it has no memory any more */
    uint64_t cpu_ns; /* of the process */
};

/* Resident memory alone would not do: what is freed after a trim that came in the middle does not raise it.  The
 * heap's free bytes alone neither: they are as many again when all was used and freed between two looks. */
static bool
is_worth_it(struct left *left, size_t resident, size_t free_bytes)
{
    size_t least = atomic_load(&worth);

    left->resident = resident < left->resident ? resident : left->resident;
    left->free = free_bytes < left->free ? free_bytes : left->free;
    return free_bytes >= least &&
           (resident - left->resident >= least || free_bytes - left->free >= least);
}

static void
look(struct left *left)
{
    uint64_t now_ns = cpu_ns();

    if (now_ns - left->cpu_ns < PLUS_NS_PER_MS) { /* it sleeps: nothing was freed */
        return;
    }
    size_t free_bytes = plus_c_allocator_free_bytes(PLUS_C_ALLOCATOR_GLIBC);
    if (is_worth_it(left, resident_bytes(), free_bytes)) {
        plus_c_allocator_release(PLUS_C_ALLOCATOR_GLIBC);
        left->resident = resident_bytes();
        left->free = free_bytes;
        atomic_fetch_add(&trims, 1);
    }
    left->cpu_ns = cpu_ns();
}

static void *
run(void *unused)
{
    struct left left = {0}; /* so the first look decides by the heap alone */

    (void)unused;
    for (;;) {
        uint64_t began = plus_now_ns();
        look(&left);
        uint64_t rest = (plus_now_ns() - began) * PART_OF_TIME;
        uint64_t interval = atomic_load(&interval_ms) * PLUS_NS_PER_MS;
        sleep_ns(rest > interval ? rest : interval);
    }
    return NULL;
}

/* All signals are for the program's own threads. */
static int
start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;

    sigfillset(&all);
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return -error;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error == 0) {
        pthread_setname_np(thread, "malloc-trim");
    }
    return -error;
}

int
plus_heap_trimmer_start(unsigned interval, size_t worth_bytes)
{
    pid_t before = atomic_load(&owner), own = getpid();

    if (plus_c_allocator_kind() != PLUS_C_ALLOCATOR_GLIBC) {
        return -ENOTSUP;
    }
    atomic_store(&interval_ms, interval);
    atomic_store(&worth, worth_bytes);
    if (before == own || !atomic_compare_exchange_strong(&owner, &before, own)) {
        return 0;
    }
    atomic_store(&trims, 0);
    int result = start_thread();
    if (result < 0) {
        atomic_store(&owner, 0);
    }
    return result;
}

unsigned
plus_heap_trimmer_count(void)
{
    return atomic_load(&trims);
}
