/* Ending a thread, without waiting for ever and without losing it.
 *
 *     state    NONE -> RUNS -> ENDING -> NONE      by the threads that start and end it
 *     orders   GO_ON -> TO_END -> ENDED            the last step by the thread itself
 *                   <-          (taken back)
 *
 * The caller that turns RUNS into ENDING joins the thread, so that two callers which fork at once do not both do it;
 * the other one waits until the state changes.  The joining caller orders the end, wakes the thread and joins it with a
 * time limit: the thread may be inside the program's code, which may wait for a lock that the caller holds.  After the
 * limit the order is taken back.  If that comes before the thread's own step to ENDED, the thread goes on as before;
 * otherwise the thread is about to end, and is joined without limit.  So no thread is left behind, and no second one is
 * started beside the first.
 *
 * In the child of a fork the fields still have the parent's values; `process` shows that.
 *
 * Rejected: cancelling it (pthread_cancel leaves its locks locked); leaving it behind after the limit, with a flag of
 * its own, which needs memory that is never freed, and lets two threads of a kind run; detached threads, which cannot
 * be waited for, so that the interpreter warns of the fork.
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

/* A joined thread may still be counted for some microseconds: the kernel reports its end before it removes it. */
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

/* True if the thread runs, or is being ended. */
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
        /* The libraries' thread-local variables take part of the stack; the minimum has room for them. */
        pthread_attr_setstacksize(&attributes,
                                  thread->stack_bytes + (size_t)sysconf(_SC_THREAD_STACK_MIN));
    }
    atomic_store(&thread->orders, GO_ON);
    atomic_store(&thread->id, 0);
    atomic_store(&thread->state, RUNS); /* the new thread may check this at once */
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
        clock_gettime(CLOCK_REALTIME, &until); /* musl has no join with another clock */
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

/* True if the caller has to join the thread.  Otherwise another caller does, and this function waits for it. */
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
        return false; /* the caller is the thread itself: it forks, for example */
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
