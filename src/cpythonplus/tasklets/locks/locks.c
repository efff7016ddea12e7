/* Waiting for locks, and passing them on to waiters. */
#include "locks.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../core/lists.h"
#include "../scheduling/loop.h"
#include "../scheduling/switching.h"

/* A waiter that has waited for longer is handed the lock. */
#define STARVING_NS PLUS_NS_PER_MS

/* plus_task_lock_insist() gives up after this many tries that end with an exception. */
#define PATIENCE 3

const char plus_acquiring[] = "acquiring";

static bool
is_orphaned(const struct plus_task_lock *lock)
{
    return lock->thread != 0 ? plus_identity_is_gone(lock->thread)
                             : lock->heir_generation != plus_fork_generation;
}

bool
plus_task_lock_is_locked(const struct plus_task_lock *lock)
{
    return lock->locked && !is_orphaned(lock);
}

/* Clears the ownership of an RLock; returns the former owner. */
static struct plus_tasklet *
disown(struct plus_task_lock *lock)
{
    struct plus_tasklet *owner = lock->owner;

    lock->owner = NULL;
    lock->heir = NULL;
    lock->count = 0;
    return owner;
}

bool
plus_task_lock_try_slowly(struct plus_task_lock *lock)
{
    if (lock->locked && !is_orphaned(lock)) {
        return false;
    }
    struct plus_tasklet *owner = disown(lock);

    plus_task_lock_hold(lock);
    Py_XDECREF(owner);
    return true;
}

/* ---- passing on ------------------------------------------------------------------------------- */

static bool
is_woken(const struct plus_task_lock *lock)
{
    return lock->woken_generation == plus_fork_generation + 1;
}

void
plus_task_lock_pass_on(struct plus_task_lock *lock)
{
    struct plus_tasklet *first = lock->queue.head;
    bool here = first->sched == plus_scheduler_own;

    if (lock->imports) { /* each waiter asks again who imports the module now */
        lock->locked = false;
        while (lock->queue.head != NULL) {
            plus_unpark(lock->queue.head);
        }
        return;
    }
    if (here || lock->hand_over || plus_now_coarse_ns() - first->parked_ns > STARVING_NS) {
        lock->locked = true;
        lock->hand_over = false;
        lock->hand_overs++;
        lock->holder = lock->heir = first;
        lock->heir_generation = plus_fork_generation;
        lock->thread = here ? plus_identity() : 0;
        plus_unpark(first);
        return;
    }
    lock->locked = false;
    /* one woken waiter is enough: it wakes the next if it does not take the lock */
    if (!is_woken(lock)) {
        lock->woken_generation = plus_fork_generation + 1;
        plus_unpark(first);
    }
}

/* The running tasklet was woken, but leaves without the lock: passes it on. */
static void
renounce(struct plus_task_lock *lock, const struct plus_tasklet *task)
{
    if (lock->heir == task) {
        lock->heir = NULL;
        plus_task_lock_release(lock);
        return;
    }
    lock->woken_generation = 0;
    if (!lock->locked && lock->queue.head != NULL) {
        plus_task_lock_pass_on(lock);
    }
}

/* Returns whether the running tasklet, which was woken, has the lock now. */
static bool
arrive(struct plus_task_lock *lock, const struct plus_tasklet *task)
{
    if (lock->heir == task) {
        lock->heir = NULL;
        lock->thread = plus_identity();
        return true;
    }
    lock->woken_generation = 0;
    return plus_task_lock_try(lock);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* Whether nobody can end the wait: once the interpreter finalises, no other thread runs Python code (see
 * threads/waiting/waiting.c). */
static bool
is_hopeless(const struct plus_scheduler *sched, uint64_t deadline_ns)
{
#if PY_VERSION_HEX >= 0x030D0000
    if (deadline_ns == PLUS_NO_DEADLINE && plus_compat_is_finalizing() && sched->runcount <= 1) {
        PyErr_SetString(PyExc_PythonFinalizationError,
                        "cannot wait for a lock at interpreter finalization");
        return true;
    }
#endif
    return false;
}

static int
is_heir(struct plus_tasklet *task, void *lock)
{
    return ((struct plus_task_lock *)lock)->heir == task;
}

/* Whether the heir cannot run before the code that asks for the lock is over: a callback or a signal handler in the
 * same thread, or code inside the heir's own wait. */
static bool
heir_is_behind(struct plus_scheduler *sched, struct plus_task_lock *lock)
{
    if (lock->heir == sched->running) {
        return true;
    }
    return sched->in_callback &&
           (is_heir(sched->main, lock) || plus_scheduler_each(sched, is_heir, lock));
}

/* Tries to take the lock.  An heir that cannot run first loses it, since waiting for it would be in vain; it tries
 * again later, like a woken waiter. */
static bool
try_it(void *argument)
{
    struct plus_task_lock *lock = argument;

    if (plus_task_lock_try(lock)) {
        return true;
    }
    if (lock->heir == NULL || !heir_is_behind(plus_scheduler_own, lock)) {
        return false;
    }
    lock->heir = NULL;
    plus_task_lock_hold(lock);
    return true;
}

/* Whether the running tasklet waits for a module that another thread imports: 1, 0, or -1 with an exception.  run() must
 * not return then: the program does not know of this wait, and the end of its thread would kill the tasklet inside of
 * an import.  A tasklet of the same thread may import for as long as it likes: it may wait for what comes behind
 * run(). */
static int
is_imported_elsewhere(struct plus_task_lock *lock)
{
    PyObject *ask = plus_import_from("cpythonplus.tasklets._importing", "is_elsewhere");
    PyObject *answer = ask != NULL ? PyObject_CallOneArg(ask, (PyObject *)lock) : NULL;
    int elsewhere = answer != NULL ? PyObject_IsTrue(answer) : -1;

    Py_XDECREF(ask);
    Py_XDECREF(answer);
    return elsewhere;
}

/* plus_park(), for a lock of importlib too. */
static enum plus_parked
park(struct plus_scheduler *sched, struct plus_task_lock *lock, uint64_t deadline_ns, bool again,
     bool *woken)
{
    uint32_t generation = plus_fork_generation;
    int elsewhere = lock->imports ? is_imported_elsewhere(lock) : 0;

    *woken = lock->imports && !lock->locked; /* it was freed meanwhile */
    if (elsewhere < 0) {
        return PLUS_PARKED_RAISED;
    }
    if (*woken) {
        return PLUS_PARKED_WOKEN;
    }
    plus_loop_ask(sched, elsewhere);
    enum plus_parked how = plus_park(sched, &lock->queue, deadline_ns, again, woken);

    if (generation == plus_fork_generation) { /* the child of a fork counts from 0 */
        plus_loop_ask(sched, -elsewhere);
    }
    return how;
}

int
plus_task_lock_wait(struct plus_task_lock *lock, uint64_t deadline_ns)
{
    struct plus_scheduler *sched = deadline_ns != 0 ? plus_scheduler_get() : NULL;
    uint64_t began_ns = 0;

    if (deadline_ns == 0) {
        return 0;
    }
    if (sched == NULL || is_hopeless(sched, deadline_ns)) {
        return -1;
    }
    if (try_it(lock)) {
        return 1; /* making the scheduler may have run finalisers, which freed it */
    }
    if (sched->in_callback) {
        /* Wait without switching, since other threads can free the lock. */
        if (lock->thread == plus_identity() && sched->parking.count > 1) {
            (void)plus_refuse_in_callback(sched);
            return -1;
        }
        return plus_wait_beside(try_it, lock, deadline_ns);
    }
    if (!PyObject_GC_IsTracked((PyObject *)lock)) {
        PyObject_GC_Track(lock); /* with a waiter it can be part of cycles */
    }
    lock->waits++;
    for (;;) {
        bool woken, again = began_ns != 0;
        enum plus_parked how = park(sched, lock, deadline_ns, again, &woken);

        if (how == PLUS_PARKED_RAISED) {
            if (woken) {
                renounce(lock, sched->running);
            }
            return -1;
        }
        if (how == PLUS_PARKED_TIMED_OUT) {
            lock->timeouts++;
            return 0;
        }
        if (arrive(lock, sched->running)) {
            return 1;
        }
        lock->in_vain++;
        if (!again) {
            began_ns = sched->running->parked_ns;
        }
        lock->hand_over = plus_now_coarse_ns() - began_ns > STARVING_NS;
    }
}

int
plus_task_lock_insist(struct plus_task_lock *lock)
{
    PyObject *exception = NULL;
    bool held = plus_task_lock_try(lock), refused = false;

    for (int tries = 0; tries < PATIENCE && !held && !refused; tries++) {
        uint32_t waits = lock->waits;

        held = plus_task_lock_wait(lock, PLUS_NO_DEADLINE) > 0;
        refused = lock->waits == waits;
        if (!held) {
            exception = plus_take_exception_after(exception);
            held = !refused && plus_task_lock_try(lock);
        }
    }
    if (exception != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
        return held ? -1 : -2;
    }
    return 0;
}

/* ---- forks ------------------------------------------------------------------------------------ */

void
plus_task_lock_reinit(struct plus_task_lock *lock)
{
    struct plus_tasklet *owner = disown(lock);

    lock->locked = false;
    lock->woken_generation = 0;
    while (lock->queue.head != NULL) {
        plus_unpark(lock->queue.head);
    }
    Py_XDECREF(owner);
}

static int
look_again(struct plus_tasklet *task, void *ignored)
{
    struct plus_task_lock *lock = (struct plus_task_lock *)task->channel;

    if (task->blocked && task->channel->waits == plus_acquiring &&
        (!lock->locked || is_orphaned(lock))) {
        plus_unpark(task);
    }
    return 0;
}

void
plus_task_locks_after_fork(struct plus_scheduler *sched)
{
    (void)look_again(sched->main, NULL);
    (void)plus_scheduler_each(sched, look_again, NULL);
}
