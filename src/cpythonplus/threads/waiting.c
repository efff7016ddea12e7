/* Waiting without the GIL, and what interrupts it.
 *
 * A wait: queue with the GIL held; give it up; plus_waiter_wait_nogil(); get it back; rouse the next of a crowd
 * (plus_waiter_arrived); look what came of it.
 *
 *     GRANTED    the thing is this thread's already
 *     WOKEN      a lock has to be taken yet, which is done with the GIL only: a thread that had the lock and stood in the
 *                GIL's queue would stop all who want the lock.  In vain: once more from the start
 *     TIMED_OUT  out of the queue
 *     SIGNAL     still queued: the handlers run, and the wait goes on where it was
 *
 * A handler that raises ends the wait.  The waiter leaves, and what it had been given meanwhile goes to another:
 * plus_lock_leave() sees to that for a lock, the caller of plus_wait() for other things, told by *ended.
 *
 * A handler may fork, too.  The child goes on with the wait, queued again (waitq.h); but the waiter that was woken before
 * this one, and was to wake it, may be a thread that is not there.  So plus_acquire() leaves and tries as if it came anew.
 *
 * A condition that has let its lock go must have it back before it can raise anything: plus_acquire_surely() heeds no
 * signals.  The handlers run after it.
 */
#include "waiting.h" /* Python.h first: it sets the feature macros */

#include "state.h"

unsigned long plus_main_ident;

int
plus_run_handlers(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    plus_waiter_interrupted(queue, waiter);
    int rc = Py_MakePendingCalls();
    plus_waiter_resumed(waiter);
    return rc;
}

/* Once the interpreter finalises no other thread runs Python code, so nobody can end a wait without a
 * dead line: an exception, as in the standard library from 3.15 on, instead of a process that hangs.
 * Up to 3.12 there is no exception for it, and it hangs there too. */
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

/* One wait for the lock, queued already or not. */
static enum plus_wait_result
wait_for_lock(struct plus_lock *lock, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    enum plus_wait_result result = PLUS_WAIT_WOKEN;

    if (plus_lock_enqueue(lock, waiter)) {
        Py_BEGIN_ALLOW_THREADS
        result = plus_lock_wait_nogil(lock, waiter, deadline_ns);
        Py_END_ALLOW_THREADS
        plus_waiter_arrived(waiter);
    }
    return result;
}

int
plus_acquire(struct plus_lock *lock, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    uint32_t generation = plus_fork_generation;

    if (is_hopeless(deadline_ns)) {
        return -1;
    }
    plus_waiter_init(&waiter, plus_heeds_signals());
    for (;;) {
        switch (wait_for_lock(lock, &waiter, deadline_ns)) {
        case PLUS_WAIT_GRANTED:
            return 1;
        case PLUS_WAIT_TIMED_OUT:
            return 0;
        case PLUS_WAIT_WOKEN:
            if (plus_lock_after_wake(lock, &waiter)) {
                return 1;
            }
            break;
        case PLUS_WAIT_SIGNAL:
            if (plus_run_handlers(&lock->queue, &waiter) < 0) {
                plus_lock_leave(lock, &waiter);
                return -1;
            }
            if (generation != plus_fork_generation) {
                /* This is the child of a fork: whoever was to be woken before may be left behind. */
                generation = plus_fork_generation;
                plus_lock_leave(lock, &waiter);
                if (plus_lock_try(lock, waiter.identity)) {
                    return 1;
                }
            }
            break;
        }
    }
}

void
plus_acquire_surely(struct plus_lock *lock)
{
    struct plus_waiter waiter;
    enum plus_wait_result result;

    if (plus_lock_try(lock, plus_identity())) {
        return;
    }
    plus_waiter_init(&waiter, false);
    do {
        result = wait_for_lock(lock, &waiter, PLUS_FUTEX_NO_DEADLINE);
    } while (result != PLUS_WAIT_GRANTED && !plus_lock_after_wake(lock, &waiter));
}

enum plus_wait_result
plus_wait(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns,
          enum plus_wait_result *ended)
{
    enum plus_wait_result result;

    if (is_hopeless(deadline_ns)) {
        *ended = plus_waiter_leave(queue, waiter);
        return PLUS_WAIT_SIGNAL;
    }
    for (;;) {
        Py_BEGIN_ALLOW_THREADS
        result = plus_waiter_wait_nogil(queue, waiter, deadline_ns);
        Py_END_ALLOW_THREADS
        plus_waiter_arrived(waiter);
        if (result != PLUS_WAIT_SIGNAL) {
            return result;
        }
        if (plus_run_handlers(queue, waiter) < 0) {
            *ended = plus_waiter_leave(queue, waiter);
            return PLUS_WAIT_SIGNAL;
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
    {"threads_set_main", threads_set_main, METH_O,
     PyDoc_STR(
         "threads_set_main($module, ident, /)\n--\n\n"
         "Say which thread runs signal handlers, so that its waits are interrupted by them.")},
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
