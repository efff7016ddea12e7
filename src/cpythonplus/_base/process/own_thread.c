/* Ending a thread, without waiting for ever and without losing it.
 *
 *     state    NONE -> RUNS -> ENDING -> NONE      by whoever starts and ends it
 *     orders   GO_ON -> TO_END -> ENDED            the last step by the thread itself
 *                   <-          (taken back)
 *
 * Whoever turns RUNS into ENDING is the one that joins, so that two threads which fork at once do not both do it; the other
 * waits until the state is another one.  It orders the end, wakes the thread and joins it with a time limit: the thread may be
 * inside the program's code, which may wait for something that the caller has.  When the limit has passed, the order is taken
 * back.  Either that, or the thread's own step to ENDED, comes first: after the one it goes on as if nothing had been, after
 * the other it is as good as gone and is joined without limit.  So nobody is left behind, and no second one is started beside
 * the first.
 *
 * In the child of a fork the words say what was true in the parent; `process` tells.
 *
 * Rejected: to cancel it (pthread_cancel leaves its locks locked); to leave it behind after the limit, with a flag of its
 * own that says so, which needs memory that nobody can free, and lets two of a kind run; detached threads that end when they
 * like, which nobody can wait for, so that the fork behind it is warned of.
 */
#define _GNU_SOURCE
#include "own_thread.h"

#include "clock.h"
#include "futex.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that is joined may still be counted for some microseconds: the kernel tells of its end before it forgets it. */
#define GONE_LIMIT_NS (20 * PLUS_NS_PER_MS)

enum { NONE, RUNS, ENDING };
enum { GO_ON, TO_END, ENDED };

static void *
begin(void *argument)
{
    struct plus_own_thread *self = argument;

    prctl(PR_SET_NAME, self->name, 0, 0, 0);
    atomic_store(&self->id, (int)syscall(SYS_gettid));
    self->run(self);
    return NULL;
}

static void
set_state(struct plus_own_thread *thread, uint32_t state)
{
    atomic_store(&thread->state, state);
    plus_futex_wake(&thread->state, INT32_MAX);
}

/* It runs, or is being ended. */
static bool
is_here(const struct plus_own_thread *thread)
{
    return atomic_load(&thread->process) == (int)getpid() && atomic_load(&thread->state) != NONE;
}

int
plus_own_thread_start(struct plus_own_thread *thread)
{
    sigset_t all, before;
    pthread_attr_t attributes;

    if (is_here(thread)) {
        return 0;
    }
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return -error;
    }
    if (thread->stack_bytes != 0) {
        /* The libraries' thread-local variables come out of the stack; the least one has room for them. */
        pthread_attr_setstacksize(&attributes,
                                  thread->stack_bytes + (size_t)sysconf(_SC_THREAD_STACK_MIN));
    }
    atomic_store(&thread->orders, GO_ON);
    atomic_store(&thread->id, 0);
    atomic_store(&thread->state, RUNS); /* it may ask itself at once */
    atomic_store(&thread->process, (int)getpid());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread->handle, &attributes, begin, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        atomic_store(&thread->state, NONE);
    }
    return -error;
}

bool
plus_own_thread_runs(const struct plus_own_thread *thread)
{
    return atomic_load(&thread->state) == RUNS && atomic_load(&thread->process) == (int)getpid();
}

bool
plus_own_thread_is_to_end(struct plus_own_thread *self)
{
    uint32_t ordered = TO_END;

    return atomic_compare_exchange_strong(&self->orders, &ordered, ENDED);
}

static bool
join(struct plus_own_thread *thread, uint64_t limit_ns)
{
    struct timespec until;
    char path[64];

    if (limit_ns == PLUS_OWN_THREAD_NO_LIMIT) {
        pthread_join(thread->handle, NULL);
    }
    else {
        clock_gettime(CLOCK_REALTIME, &until); /* musl can do no other */
        uint64_t until_ns = plus_timespec_ns(&until) + limit_ns;
        until =
            (struct timespec){(time_t)(until_ns / PLUS_NS_PER_S), (long)(until_ns % PLUS_NS_PER_S)};
        if (pthread_timedjoin_np(thread->handle, NULL, &until) != 0) {
            return false;
        }
    }
    uint64_t deadline = plus_now_ns() + GONE_LIMIT_NS;

    snprintf(path, sizeof path, "/proc/self/task/%d", atomic_load(&thread->id));
    while (access(path, F_OK) == 0 && plus_now_ns() < deadline) {
        sched_yield();
    }
    return true;
}

/* Whether the caller is the one that joins it.  Else another one does, and is waited for. */
static bool
claim(struct plus_own_thread *thread)
{
    uint32_t running = RUNS;

    if (atomic_load(&thread->process) != (int)getpid()) {
        return false;
    }
    if (atomic_compare_exchange_strong(&thread->state, &running, ENDING)) {
        return true;
    }
    while (atomic_load(&thread->state) == ENDING) {
        (void)plus_futex_wait(&thread->state, ENDING, PLUS_FUTEX_NO_DEADLINE);
    }
    return false;
}

bool
plus_own_thread_join(struct plus_own_thread *thread, uint64_t limit_ns)
{
    if (!claim(thread)) {
        return !plus_own_thread_runs(thread);
    }
    bool ended = join(thread, limit_ns);

    set_state(thread, ended ? NONE : RUNS);
    return ended;
}

bool
plus_own_thread_end(struct plus_own_thread *thread, uint64_t limit_ns)
{
    uint32_t ordered = TO_END;

    if (is_here(thread) && atomic_load(&thread->id) == (int)syscall(SYS_gettid)) {
        return false; /* it forks, for one */
    }
    if (!claim(thread)) {
        return !plus_own_thread_runs(thread);
    }
    atomic_store(&thread->orders, TO_END);
    thread->wake();
    bool ended = join(thread, limit_ns);

    if (!ended && !atomic_compare_exchange_strong(&thread->orders, &ordered, GO_ON)) {
        ended = join(thread, PLUS_OWN_THREAD_NO_LIMIT);
    }
    set_state(thread, ended ? NONE : RUNS);
    return ended;
}

void
plus_own_thread_let_go(struct plus_own_thread *thread)
{
    pthread_detach(thread->handle);
    set_state(thread, NONE);
}
