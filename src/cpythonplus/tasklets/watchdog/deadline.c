/* The thread that waits for the deadlines; see deadline.h.
 *
 * Setting and cancelling a deadline is a store: the thread is woken only if it would sleep too long.  So a loop that
 * calls run_for() each time before the last deadline has passed wakes nobody.
 *
 * `earliest` is written with the GIL held; `sleeps_until` by the thread, before it sleeps.  Each side writes its own
 * and then reads the other's, sequentially consistent, so at least one of the two sees that the sleep is too long:
 *
 *   set      earliest = E;   then sleeps_until > E?  increment `changes` and wake
 *   thread   read `changes`; sleeps_until = S;  then earliest < S?  start again;  else sleep on `changes`
 *
 * A cancelled deadline wakes the thread for nothing, once.
 *
 * When a deadline has passed, the thread sets `firing`, checks `stopped`, takes a thread state and the GIL, and expires
 * the watchdogs whose time is over.  That may run Python code, which may make and end schedulers, so the list is walked
 * from its head again after each.  `own_tstate` is set before the GIL is asked for, as the holder of the GIL may be
 * counting the threads that could wake a tasklet.
 *
 * stop, at the interpreter's end, sets `stopped` and then waits until `firing` is 0: either the thread sees the
 * former, or stop sees the latter.  From then on the thread never asks for the GIL again, which it would not get.
 *
 * fork: the thread ends before, and is started again in parent and child if a deadline is left.  CPython warns of a
 * process that forks with several threads; without a deadline nothing is started until the next run_for().
 *
 * Rejected: a thread for each call of run_for(), which costs more than most calls; a thread that ends after some idle
 * time, which still causes a warning at each fork before that; a kernel timer (timer_create) with a signal, which would
 * end the program's system calls with EINTR.
 */
#include "deadline.h"

#include "../../_base/process/behind_fork.h"
#include "../../_base/process/clock.h"
#include "../../_base/process/futex.h"
#include "../../_base/process/own_thread.h"

#define NEVER PLUS_FUTEX_NO_DEADLINE
#define RETRY_NS (10 * PLUS_NS_PER_MS) /* if there was no memory for a thread state */
#define PATIENCE_NS PLUS_NS_PER_S /* of a fork: the program's sys.unraisablehook may be running */
#define SECONDS_MAX 1e9           /* a longer time counts as none */

static _Atomic uint64_t earliest = NEVER; /* written with the GIL held */
static _Atomic uint64_t sleeps_until;     /* written by the thread */
static _Atomic uint32_t changes;          /* futex word that the thread sleeps on */
static _Atomic uint32_t firing;           /* 1: the thread is about to take the GIL, or has it */
static _Atomic bool stopped;
static _Atomic(PyThreadState *) own_tstate; /* of the thread, while it has one */

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
fire(void)
{
    atomic_store(&firing, 1);
    if (!atomic_load(&stopped)) {
        PyThreadState *tstate = PyThreadState_New(PyInterpreterState_Main());

        atomic_store(&own_tstate, tstate);
        if (tstate != NULL) {
            PyEval_RestoreThread(tstate);
            uint64_t now = plus_now_ns();
            struct plus_scheduler *sched = plus_schedulers;

            while (sched != NULL) {
                if (sched->watch.deadline_ns != 0 && sched->watch.deadline_ns <= now) {
                    sched->watch.deadline_ns = 0;
                    plus_above.expire(sched);
                    sched = plus_schedulers; /* sys.unraisablehook may have ended its thread */
                }
                else {
                    sched = sched->next_scheduler;
                }
            }
            find_earliest();
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

static void
run(struct plus_own_thread *self)
{
    /* A fork may have copied the state of a former thread. */
    atomic_store(&firing, 0);
    atomic_store(&own_tstate, NULL);
    for (;;) {
        uint32_t seen = atomic_load(&changes);
        uint64_t until = next_deadline();

        if (plus_own_thread_is_to_end(self)) {
            return;
        }
        if (until <= plus_now_ns()) {
            fire();
            continue;
        }
        /* The store comes before the check: either this thread sees a new deadline, or the thread that sets the
         * deadline sees sleeps_until and wakes this one. */
        atomic_store(&sleeps_until, until);
        if (next_deadline() >= until) {
            (void)plus_futex_wait(&changes, seen, until);
        }
    }
}

static void
wake(void)
{
    atomic_fetch_add(&changes, 1);
    plus_futex_wake(&changes, 1);
}

static struct plus_own_thread thread = {.name = "cpythonplus", .run = run, .wake = wake};

/* ---- with the GIL held ------------------------------------------------------------------------ */

int
plus_deadline_prepare(void)
{
    if (atomic_load(&stopped)) {
        PyErr_SetString(PyExc_RuntimeError, "run_for(): the interpreter is ending");
        return -1;
    }
    if (plus_own_thread_runs(&thread)) {
        return 0;
    }
    int error = plus_own_thread_start(&thread);

    if (error < 0) {
        PyErr_Format(PyExc_RuntimeError, "run_for(): pthread_create: %s", strerror(-error));
        return -1;
    }
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
        wake();
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
plus_deadline_before_fork(void)
{
    if (plus_own_thread_runs(&thread)) {
        Py_BEGIN_ALLOW_THREADS
        plus_own_thread_end(&thread, PATIENCE_NS);
        Py_END_ALLOW_THREADS
    }
}

void
plus_deadline_after_fork(void)
{
    if (plus_own_thread_runs(&thread)) {
        return;
    }
    atomic_store(&own_tstate, NULL);
    find_earliest();
    if (atomic_load(&earliest) != NEVER && plus_deadline_prepare() < 0) {
        PyErr_WriteUnraisable(NULL);
    }
}

void
plus_deadline_after_fork_parent(void)
{
    if (atomic_load(&earliest) != NEVER) {
        plus_behind_fork(plus_deadline_after_fork);
    }
}

void
plus_deadline_stop(void)
{
    atomic_store(&stopped, true);
    if (plus_own_thread_runs(&thread)) {
        Py_BEGIN_ALLOW_THREADS
        while (atomic_load(&firing) != 0) {
            (void)plus_futex_wait(&firing, 1, NEVER);
        }
        Py_END_ALLOW_THREADS
    }
}
