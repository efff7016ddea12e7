/* Waiting without the GIL, and its interruption by signals.
 *
 * A wait: queue with the GIL held; give it up; plus_waiter_wait_nogil(); get it back; rouse the next of a relay
 * (plus_waiter_arrived); act on the result:
 *
 *   GRANTED    the thing belongs to this thread already
 *   WOKEN      a lock still has to be taken, only with the GIL: a thread that had the lock and queued for the GIL
 *              would stop all threads that want the lock.  If another thread was faster, the wait starts again
 *   TIMED_OUT  the waiter is out of the queue
 *   SIGNAL     only in the main thread: it runs signal handlers if plus_waiter_interrupt() says SIGNAL too
 *
 * The handlers run while the waiter is out of the queue, so a handler finds the lock, the queue or the semaphore as if
 * its thread did not wait at all: it may take the thing, put into it, fork, raise, or wait for it.  Afterwards the wait
 * starts again with the same deadline: plus_acquire() tries the lock first, and plus_wait() returns WOKEN, after which
 * its callers check their condition again.  If the wait was ended before the handlers could run, the interpreter runs
 * them a moment later, when the acquisition is over.
 *
 * A waiter of a condition `stays` queued instead: only a notification can reach it, and that must not get lost.
 *
 * A condition or a queue that has released its lock must have it back before it can raise anything.
 * plus_acquire_surely() runs handlers too, since the thread that has the lock may wait for one of them, and waits on if
 * one raises.  A thread that has been granted an item or a permit does not call it: it returns without the lock,
 * because a handler would find the thing neither in its place nor in its thread's hands.
 */
#include "waiting.h" /* Python.h first: it sets the feature macros */

#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../../gil/binding.h"
#include "../state.h"
#include "present_waits.h"

unsigned long plus_main_ident;

/* Once the interpreter finalises, no other thread runs Python code, so nobody can end a wait without a deadline.  As in
 * the standard library from 3.15 on, it raises an exception instead of hanging the process.  Up to 3.12 there is no
 * such exception, and it hangs there too. */
static bool
is_hopeless(uint64_t deadline_ns)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (deadline_ns == PLUS_FUTEX_NO_DEADLINE && plus_compat_is_finalizing()) {
        PyErr_SetString(PyExc_PythonFinalizationError,
                        "cannot wait for a lock at interpreter finalization");
        return true;
    }
#else
    (void)deadline_ns;
#endif
    return false;
}

/* When a wait is to look at the lock's owner: halfway to a stall. */
static uint64_t
first_look_ns(const struct plus_waiter *waiter)
{
    uint64_t stall_ns = plus_sched_stall_ns();

    return stall_ns != UINT64_MAX ? waiter->start_ns + stall_ns / 2u : PLUS_FUTEX_NO_DEADLINE;
}

/* Waits once for the lock: GRANTED, TIMED_OUT, WOKEN to try it, or SIGNAL if handlers are to run. */
static enum plus_wait_result
wait_for_lock(struct plus_lock *lock, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    enum plus_wait_result result;

    if (!plus_lock_enqueue(lock, waiter)) {
        return PLUS_WAIT_WOKEN;
    }
    if (waiter->look_ns == 0) {
        waiter->look_ns = first_look_ns(waiter);
    }
    /* A lock of this room follows the head of its object. */
    plus_waiter_tells(waiter, (const PyObject *)lock - 1, "acquire");
    struct plus_present_wait present = {waiter, deadline_ns};
    plus_present_wait_begins(&present);
    Py_BEGIN_ALLOW_THREADS
    result = plus_lock_wait_nogil(lock, waiter, deadline_ns);
    Py_END_ALLOW_THREADS
    plus_present_wait_ends();
    if (result == PLUS_WAIT_SIGNAL) {
        result = plus_waiter_interrupt(&lock->queue, waiter);
        if (result == PLUS_WAIT_SIGNAL && plus_now_ns() >= waiter->look_ns) {
            /* Note what the owner does, once a wait.  The waiter is out of the queue: references are given back. */
            uint64_t owner = plus_lock_look(lock);

            waiter->look_ns = PLUS_FUTEX_NO_DEADLINE;
            if (owner != 0 && owner != waiter->identity) {
                plus_stalls_look(lock, owner);
            }
        }
        return result;
    }
    plus_waiter_arrived(waiter);
    return result;
}

int
plus_acquire(struct plus_lock *lock, uint64_t deadline_ns)
{
    struct plus_waiter waiter;

    if (is_hopeless(deadline_ns)) {
        return -1;
    }
    plus_waiter_init(&waiter, plus_heeds_signals());
    waiter.look_ns = 0;
    for (;;) {
        switch (wait_for_lock(lock, &waiter, deadline_ns)) {
        case PLUS_WAIT_GRANTED:
            return 1;
        case PLUS_WAIT_TIMED_OUT:
            plus_stalls_gave_up(lock, waiter.start_ns);
            return 0;
        case PLUS_WAIT_WOKEN:
            if (plus_lock_after_wake(lock, &waiter)) {
                return 1;
            }
            break;
        case PLUS_WAIT_SIGNAL:
            if (waiter.heeds_signals && Py_MakePendingCalls() < 0) {
                return -1;
            }
            if (plus_lock_try(lock, waiter.identity)) {
                return 1;
            }
            break;
        }
    }
}

int
plus_acquire_surely(struct plus_lock *lock)
{
    struct plus_waiter waiter;

    if (plus_lock_try(lock, plus_identity())) {
        return 0;
    }
    PyObject *exception = PyErr_Occurred() != NULL ? plus_compat_take_exception() : NULL;
    int result = 0;

    plus_waiter_init(&waiter, plus_heeds_signals());
    waiter.look_ns = 0;
    for (bool acquired = false; !acquired;) {
        switch (wait_for_lock(lock, &waiter, PLUS_FUTEX_NO_DEADLINE)) {
        case PLUS_WAIT_SIGNAL:
            if (waiter.heeds_signals && Py_MakePendingCalls() < 0) {
                exception = plus_take_exception_after(exception);
                result = -1;
            }
            acquired = plus_lock_try(lock, waiter.identity);
            break;
        case PLUS_WAIT_WOKEN:
            acquired = plus_lock_after_wake(lock, &waiter);
            break;
        default:
            acquired = true;
        }
    }
    if (exception != NULL) {
        plus_raise_again(exception);
    }
    return result;
}

enum plus_wait_result
plus_wait(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    enum plus_wait_result result;

    if (is_hopeless(deadline_ns)) {
        plus_waiter_leave(queue, waiter);
        return PLUS_WAIT_SIGNAL;
    }
    for (;;) {
        struct plus_present_wait present = {waiter, deadline_ns};
        plus_present_wait_begins(&present);
        Py_BEGIN_ALLOW_THREADS
        result = plus_waiter_wait_nogil(queue, waiter, deadline_ns);
        Py_END_ALLOW_THREADS
        plus_present_wait_ends();
        if (result != PLUS_WAIT_SIGNAL) {
            plus_waiter_arrived(waiter);
            return result;
        }
        result = plus_waiter_interrupt(queue, waiter);
        if (result != PLUS_WAIT_SIGNAL) {
            return result;
        }
        int failed = Py_MakePendingCalls();
        plus_waiter_resumed(waiter);
        if (failed < 0) {
            if (waiter->stays) {
                plus_waiter_leave(queue, waiter);
            }
            return PLUS_WAIT_SIGNAL;
        }
        if (!waiter->stays) {
            return PLUS_WAIT_WOKEN;
        }
    }
}

void
plus_waiting_atfork_child(void)
{
    plus_main_ident = PyThread_get_thread_ident();
}

static PyObject *
threads_set_main(PyObject *module, PyObject *ident)
{
    unsigned long value = PyLong_AsUnsignedLong(ident);

    if (value == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    plus_main_ident = value;
    Py_RETURN_NONE;
}

static PyMethodDef waiting_methods[] = {
    PLUS_METHOD(
        "threads_set_main", threads_set_main, METH_O, "$module, ident, /",
        "Say which thread runs signal handlers, so that its waits are interrupted by them."),
    {NULL, NULL, 0, NULL},
};

int
plus_waiting_exec(PyObject *module, struct plus_threads_state *state)
{
    (void)state;
    if (plus_main_ident == 0) {
        plus_main_ident = PyThread_get_thread_ident(); /* threads_set_main() corrects it */
    }
    return PyModule_AddFunctions(module, waiting_methods);
}
