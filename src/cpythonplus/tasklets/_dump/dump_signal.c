/* Three sides: handlers, which may run in any thread at any instruction; our thread, which makes the calls; and the
 * code that switches it on and off, with the GIL held.
 *
 *   handler   sets pending[signum], then posts `wake`, and nothing else: it may have interrupted malloc(), or the
 *             holder of the GIL.  In a child between fork and exec it does nothing, as `owner` is another process
 *   there. thread    sleeps on `wake` without a thread state.  Then it takes the GIL, and calls once for each signal
 *             that is pending: signals that come during a call cause one more call, however many they are.
 *   on        starts the thread before it installs the handler.
 *   off       clears `pending`, and restores the earlier handler, unless other code has installed another one since.
 *             If no signal is left, it ends the thread.
 *
 * Code that ends the thread gives the GIL up and waits a second.  The thread calls for pending signals before it ends:
 * a program that is stopped right after the signal is shown too.  If a call takes longer, the thread goes on as before
 * (own_thread.c).  Meanwhile another thread may switch a signal on, and find a thread that is about to end; so `off`
 * checks again afterwards, and starts a new one.
 *
 * fork: pause ends the thread first, as Python warns of forks beside threads from 3.12 on.  Signals that come meanwhile
 * stay pending.  resume starts it again in the parent, after os.fork (behind_fork.h).  In the child it makes a new
 * semaphore, because the old one may have any count, clears `pending`, and sets `owner`.
 *
 * The thread waits for a semaphore, not for a pipe or an eventfd: a program that closes all descriptors to become a
 * daemon would get the handler's bytes in a file of its own.  Rejected: Py_AddPendingCall(), which needs the main
 * thread to run.
 */
#include "dump_signal.h"

#include "../../_base/process/behind_fork.h"
#include "../../_base/process/clock.h"
#include "../../_base/process/own_thread.h"
#include "../../_base/raise.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define PATIENCE_NS PLUS_NS_PER_S

/* Written with the GIL held, unless a comment says otherwise. */
static sem_t wake;
static bool prepared;              /* `wake` is initialised */
static _Atomic int owner;          /* the process that the thread is in; read by handlers */
static _Atomic bool pending[NSIG]; /* set by handlers */
static bool active[NSIG];
static struct sigaction previous[NSIG]; /* the actions that the active ones replaced */
static PyObject *callable;

/* ---- on a signal ------------------------------------------------------------------------------ */

static void
on_signal(int signum)
{
    int error = errno;

    /* A child between fork and exec has a copy of `wake`, after vfork even the same memory. */
    if (getpid() == atomic_load(&owner)) {
        atomic_store(&pending[signum], true);
        (void)sem_post(&wake);
    }
    errno = error;
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

static void
call_pending(void)
{
    PyGILState_STATE state = PyGILState_Ensure();

    for (int signum = 1; signum < NSIG; signum++) {
        if (atomic_exchange(&pending[signum], false)) {
            PyObject *function = Py_XNewRef(callable);
            PyObject *result =
                function != NULL ? PyObject_CallFunction(function, "i", signum) : NULL;

            if (result == NULL && PyErr_Occurred()) {
                PyErr_WriteUnraisable(function);
            }
            Py_XDECREF(result);
            Py_XDECREF(function);
        }
    }
    PyGILState_Release(state);
}

static void
wait_and_call(struct plus_own_thread *self)
{
    for (;;) {
        while (sem_wait(&wake) != 0 && errno == EINTR) {
        }
        /* Checked first: the program may end right after the signal. */
        if (is_pending() && !plus_compat_is_finalizing()) {
            call_pending();
        }
        if (plus_own_thread_is_to_end(self)) {
            return;
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void
post(void)
{
    (void)sem_post(&wake);
}

static struct plus_own_thread thread = {.name = "cpythonplus", .run = wait_and_call, .wake = post};

/* 0, or -1 with OSError. */
static int
start_thread(void)
{
    int error = plus_own_thread_start(&thread);

    if (error < 0) {
        (void)plus_raise_errno("pthread_create", -error);
    }
    return error < 0 ? -1 : 0;
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

void
plus_dump_signal_pause(void)
{
    if (plus_own_thread_runs(&thread)) {
        Py_BEGIN_ALLOW_THREADS
        plus_own_thread_end(&thread, PATIENCE_NS);
        Py_END_ALLOW_THREADS
    }
}

/* Starts the thread again some time after it was ended; all signals may have been switched off since. */
static void
go_on(void)
{
    if (!any_active()) {
        return;
    }
    if (start_thread() < 0) {
        PyErr_WriteUnraisable(callable);
    }
    else if (is_pending()) {
        post();
    }
}

void
plus_dump_signal_resume(bool child)
{
    if (!any_active()) {
        return;
    }
    if (child) {
        for (int signum = 1; signum < NSIG; signum++) {
            atomic_store(&pending[signum], false);
        }
        (void)sem_init(&wake, 0, 0);
        atomic_store(&owner, (int)getpid());
        go_on();
    }
    else {
        plus_behind_fork(go_on);
    }
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
    return start_thread() < 0 ? -1 : install(signum);
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
        go_on(); /* a signal may have been switched on meanwhile */
    }
    return true;
}
