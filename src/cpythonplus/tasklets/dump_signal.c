/* Three sides: handlers, which may run in any thread at any instruction; the thread that calls; and who switches it on
 * and off, with the GIL held.
 *
 *   handler    sets pending[signum], then posts `wake`.  Nothing else: it may have interrupted malloc(), or who holds
 *              the GIL.  In a child between fork and exec it does nothing, as `owner` is another process there.
 *   thread     sleeps on `wake` without a thread state.  It takes the GIL, and calls once for each signal that is
 *              pending then: signals that come during a call cause one more, however many they are.
 *   on         starts the thread before it installs the handler.
 *   off        forgets what is pending, and puts the earlier handler back, unless somebody has put another one since.
 *              The last one ends the thread.
 *
 * The thread is ended by its own flag `*stopping` and a post.  It posts once more when it goes: the post may have been
 * meant for a younger one.  Whoever ends it gives the GIL up and waits a second.  A call that takes longer is left
 * alone, with its flag, which it frees when it comes to it.
 *
 * fork: pause ends the thread first, as from 3.12 on Python warns of forks beside threads.  Signals stay pending
 * meanwhile.  resume starts it again in the parent.  In the child it makes the semaphore anew, whose count may be
 * anything, forgets what is pending, and becomes `owner`.
 *
 * A semaphore and not a pipe or an eventfd: a program that closes all descriptors to become a daemon would get
 * what the handler writes into a file of its own.  Rejected: Py_AddPendingCall(), which needs the main thread to run.
 */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "dump_signal.h"

#include "../_base/raise.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 1

/* Written with the GIL held, but for `pending` and what says otherwise. */
static sem_t wake;
static bool prepared;              /* `wake` */
static _Atomic int owner;          /* the process that the thread is in; read by handlers */
static _Atomic bool pending[NSIG]; /* set by handlers */
static bool active[NSIG];
static struct sigaction previous[NSIG]; /* of active ones */
static pthread_t thread;
static bool running;           /* there is a thread that is to be ended */
static _Atomic bool *stopping; /* of that thread: one that was left alone keeps its own */
static PyObject *callable;

/* ---- on a signal ------------------------------------------------------------------------------ */

static void
on_signal(int signum)
{
    int error = errno;

    /* A child between fork and exec has a copy, after vfork even the same memory. */
    if (getpid() == atomic_load(&owner)) {
        atomic_store(&pending[signum], true);
        (void)sem_post(&wake);
    }
    errno = error;
}

static void
call(int signum)
{
    PyObject *function = Py_XNewRef(callable);
    PyObject *result = function != NULL ? PyObject_CallFunction(function, "i", signum) : NULL;

    if (result == NULL && PyErr_Occurred()) {
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(result);
    Py_XDECREF(function);
}

static bool
is_pending(void)
{
    for (int signum = 1; signum < NSIG; signum++) {
        if (atomic_load(&pending[signum])) {
            return true;
        }
    }
    return false;
}

static void *
wait_and_call(void *arg)
{
    _Atomic bool *stop = arg;

    for (;;) {
        while (sem_wait(&wake) != 0 && errno == EINTR) {
        }
        if (atomic_load(stop)) {
            (void)sem_post(
                &wake); /* it may have been for a younger thread, if this one was left alone */
            free((void *)stop);
            return NULL;
        }
        if (!is_pending() || plus_compat_is_finalizing()) {
            continue;
        }
        PyGILState_STATE state = PyGILState_Ensure();

        for (int signum = 1; signum < NSIG; signum++) {
            if (atomic_exchange(&pending[signum], false)) {
                call(signum);
            }
        }
        PyGILState_Release(state);
    }
}

/* ---- the thread ------------------------------------------------------------------------------- */

/* Signals are blocked in it: they are for the program's own threads. */
static int
start_thread(void)
{
    sigset_t all, before;

    stopping = calloc(1, sizeof(*stopping));
    if (stopping == NULL) {
        return ENOMEM;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, wait_and_call, (void *)stopping);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        (void)pthread_setname_np(thread, "cpythonplus");
    }
    else {
        free((void *)stopping);
    }
    running = error == 0;
    return error;
}

static bool
any_active(void)
{
    for (int signum = 1; signum < NSIG; signum++) {
        if (active[signum]) {
            return true;
        }
    }
    return false;
}

static void
end_thread_nogil(pthread_t ending)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(ending, NULL, &until) != 0) {
        (void)pthread_detach(ending);
    }
}

void
plus_dump_signal_pause(void)
{
    pthread_t ending = thread;

    if (!running) {
        return;
    }
    running = false;
    atomic_store(stopping, true);
    (void)sem_post(&wake);
    Py_BEGIN_ALLOW_THREADS(void)
    end_thread_nogil(ending);
    Py_END_ALLOW_THREADS
}

int
plus_dump_signal_resume(bool child)
{
    if (!any_active()) {
        return 0;
    }
    if (child) {
        for (int signum = 1; signum < NSIG; signum++) {
            atomic_store(&pending[signum], false);
        }
        (void)sem_init(&wake, 0, 0);
        running = false;
        atomic_store(&owner, (int)getpid());
    }
    int error = running ? 0 : start_thread();

    if (error != 0) {
        (void)plus_raise_errno("pthread_create", error);
        return -1;
    }
    if (is_pending()) {
        (void)sem_post(&wake);
    }
    return 0;
}

/* ---- on and off ------------------------------------------------------------------------------- */

static int
install(int signum)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigaction before;

    sigfillset(&ours.sa_mask);
    if (sigaction(signum, &ours, &before) != 0) {
        (void)plus_raise_errno("sigaction", errno);
        return -1;
    }
    if (!active[signum] || before.sa_handler != on_signal) {
        previous[signum] = before;
    }
    active[signum] = true;
    return 0;
}

int
plus_dump_signal_on(int signum, PyObject *function)
{
    if (signum < 1 || signum >= NSIG) {
        PyErr_Format(PyExc_ValueError, "%d is not the number of a signal", signum);
        return -1;
    }
    if (!prepared) {
        (void)sem_init(&wake, 0, 0);
        atomic_store(&owner, (int)getpid());
        prepared = true;
    }
    Py_XSETREF(callable, Py_NewRef(function));
    if (!running) {
        int error = start_thread();

        if (error != 0) {
            (void)plus_raise_errno("pthread_create", error);
            return -1;
        }
    }
    return install(signum);
}

bool
plus_dump_signal_off(int signum)
{
    struct sigaction now;

    if (signum < 1 || signum >= NSIG || !active[signum]) {
        return false;
    }
    active[signum] = false;
    atomic_store(&pending[signum], false);
    if (sigaction(signum, NULL, &now) == 0 && now.sa_handler == on_signal) {
        (void)sigaction(signum, &previous[signum], NULL);
    }
    if (!any_active()) {
        plus_dump_signal_pause();
    }
    return true;
}
