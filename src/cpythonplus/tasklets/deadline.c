/* The thread that knows what time it is; see deadline.h.
 *
 * Setting and cancelling a dead line is a store: the thread is woken only if it would sleep too long.  So a loop
 * that calls run_for() each time before the last dead line has passed makes no system calls.
 *
 * Who writes what: `earliest`, with the GIL held; `sleeps_until`, the thread, before it sleeps.  Each writes its own
 * and then reads the other's, in one order for all (sequentially consistent), so at least one of the two sees that
 * the sleep is too long:
 *
 *     set      earliest = E;      then sleeps_until > E?  count `changes` up and wake
 *     thread   read `changes`;    sleeps_until = S;  then earliest < S?  begin again;  else sleep on `changes`
 *
 * A cancelled dead line wakes the thread for nothing, once.
 *
 * When one has passed the thread raises `firing`, looks at `stopped`, takes a thread state and the GIL, and has the
 * watchdogs whose time is over expire.  That may run Python code, in which schedulers come and go: the list is
 * walked from its head again after each.  `own_tstate` is set before the GIL is asked for, as who holds it may be
 * counting the threads that could wake a tasklet.
 *
 * stop, at the interpreter's end, raises `stopped` and then waits for `firing` to fall: either the thread sees the one,
 * or stop sees the other.  From then on the thread never asks for the GIL again, which it would not get.
 *
 * Rejected: a timer of the kernel (timer_create) with a signal.  Programs' system calls would end with EINTR.
 */
#include "deadline.h"

#include "../_base/clock.h"
#include "../_base/futex.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define NEVER PLUS_FUTEX_NO_DEADLINE
#define RETRY_NS (10 * PLUS_NS_PER_MS) /* when there was no memory for a thread state */
#define SECONDS_MAX 1e9                /* more is for ever */

static _Atomic uint64_t earliest = NEVER; /* written with the GIL held */
static _Atomic uint64_t sleeps_until;     /* written by the thread */
static _Atomic uint32_t changes;          /* futex word that the thread sleeps on */
static _Atomic uint32_t firing;           /* 1: the thread is about to take the GIL, or has it */
static _Atomic bool stopped;
static _Atomic(PyThreadState *) own_tstate; /* of the thread, while it has one */
static pid_t runs_in; /* process that has the thread; 0: none; with the GIL held */

/* ---- the thread ------------------------------------------------------------------------------- */

static void
find_earliest(void)
{
    uint64_t found = NEVER;

    for (struct plus_scheduler *sched = plus_schedulers; sched != NULL;
         sched = sched->next_scheduler) {
        uint64_t deadline = sched->watch.deadline_ns;

        if (deadline != 0 && deadline < found) {
            found = deadline;
        }
    }
    atomic_store(&earliest, found);
}

static void
expire_all(void)
{
    uint64_t now = plus_now_ns();
    struct plus_scheduler *sched = plus_schedulers;

    while (sched != NULL) {
        if (sched->watch.deadline_ns != 0 && sched->watch.deadline_ns <= now) {
            sched->watch.deadline_ns = 0;
            plus_above.expire(sched);
            sched = plus_schedulers; /* sys.unraisablehook may have let its thread end */
        }
        else {
            sched = sched->next_scheduler;
        }
    }
    find_earliest();
}

static void
fire(void)
{
    atomic_store(&firing, 1);
    if (!atomic_load(&stopped)) {
        PyThreadState *tstate = PyThreadState_New(PyInterpreterState_Main());

        atomic_store(&own_tstate, tstate);
        if (tstate != NULL) {
            PyEval_RestoreThread(tstate);
            expire_all();
            PyThreadState_Clear(tstate);
            atomic_store(&own_tstate, NULL);
            PyThreadState_DeleteCurrent();
        }
        else {
            (void)plus_futex_wait(&changes, atomic_load(&changes), plus_now_ns() + RETRY_NS);
        }
    }
    atomic_store(&firing, 0);
    plus_futex_wake(&firing, 1);
}

static uint64_t
next_deadline(void)
{
    return atomic_load(&stopped) ? NEVER : atomic_load(&earliest);
}

static void *
thread_main(void *ignored)
{
    (void)ignored;
    for (;;) {
        uint32_t seen = atomic_load(&changes);
        uint64_t until = next_deadline();

        if (until <= plus_now_ns()) {
            fire();
            continue;
        }
        /* Either this sees a new dead line, or who sets it sees how long the sleep is to be. */
        atomic_store(&sleeps_until, until);
        if (next_deadline() >= until) {
            (void)plus_futex_wait(&changes, seen, until);
        }
    }
    return NULL;
}

static int
start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);

    if (error != 0) {
        return error;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, thread_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* ---- with the GIL held ------------------------------------------------------------------------ */

int
plus_deadline_prepare(void)
{
    pid_t here = getpid();

    if (atomic_load(&stopped)) {
        PyErr_SetString(PyExc_RuntimeError, "run_for(): the interpreter is ending");
        return -1;
    }
    if (runs_in == here) {
        return 0;
    }
    atomic_store(&firing, 0);
    atomic_store(&own_tstate, NULL);
    atomic_store(&sleeps_until, NEVER);
    int error = start_thread();

    if (error != 0) {
        PyErr_Format(PyExc_RuntimeError, "run_for(): pthread_create: %s", strerror(error));
        return -1;
    }
    runs_in = here;
    return 0;
}

void
plus_deadline_set(struct plus_scheduler *sched, double seconds)
{
    if (seconds > SECONDS_MAX) {
        return;
    }
    sched->watch.deadline_ns = plus_now_ns() + (uint64_t)(seconds * (double)PLUS_NS_PER_S);
    find_earliest();
    if (sched->watch.deadline_ns < atomic_load(&sleeps_until)) {
        atomic_fetch_add(&changes, 1);
        plus_futex_wake(&changes, 1);
    }
}

void
plus_deadline_cancel(struct plus_scheduler *sched)
{
    if (sched->watch.deadline_ns != 0) {
        sched->watch.deadline_ns = 0;
        find_earliest();
    }
}

bool
plus_deadline_is_ours(const PyThreadState *tstate)
{
    return tstate == atomic_load(&own_tstate);
}

void
plus_deadline_after_fork(void)
{
    if (runs_in != 0 && runs_in != getpid()) {
        runs_in = 0;
        atomic_store(&own_tstate, NULL);
        find_earliest();
        if (atomic_load(&earliest) != NEVER && plus_deadline_prepare() < 0) {
            PyErr_WriteUnraisable(NULL);
        }
    }
}

void
plus_deadline_stop(void)
{
    atomic_store(&stopped, true);
    if (runs_in == getpid()) {
        Py_BEGIN_ALLOW_THREADS
        while (atomic_load(&firing) != 0) {
            (void)plus_futex_wait(&firing, 1, NEVER);
        }
        Py_END_ALLOW_THREADS
    }
}
