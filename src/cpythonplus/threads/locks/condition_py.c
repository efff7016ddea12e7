/* Condition: threading.Condition.
 *
 * Over a Lock or RLock of ours everything is C.  Over any other lock (made before the patch, or of another class) its
 * Python methods are called, as threading.Condition does.
 *
 * wait(): the caller has the lock.
 *
 *     1. queue, under the queue's guard
 *     2. release the lock, all acquisitions of an RLock at once
 *     3. sleep, without the GIL; signal handlers run meanwhile, with the lock released
 *     4. take the lock back, whatever handlers raise meanwhile
 *     5. return, or raise the exception of a handler of step 3 or 4
 *
 * No notification gets lost, because the waiter queues before it releases the lock, and a thread that notifies has the
 * lock.  For the same reason notify() may read the queue's length without the guard.
 *
 * A waiter of wait() stays in the queue while handlers run, as in the standard library.  If a notification comes while
 * a handler raises, it is passed on to the next waiter, since this thread does not go on as a notified one.  A waiter
 * for a permit or an item (plus_condition_sleep) does not stay: waiting.c.
 *
 * threading.Condition's own functions, called with a native object, keep their waiters in `_waiters`.  Code that reads
 * `_waiters` gets a deque with a stand-in for each thread that waits here; from then on notify() serves both.
 */
#include "condition_py.h"

#include "../../_base/methods.h"
#include "../../_base/process/futex.h"
#include "../../_base/raise.h"
#include "../arguments.h"
#include "../statistics_py.h"
#include "../waiting/foreign_lock.h"

static inline plus_condition_object *
condition(PyObject *op)
{
    return (plus_condition_object *)op;
}

/* ------------------------------------------------------------------------------------------------
 * The lock of the condition
 */

static inline plus_rlock_object *
as_rlock(const plus_condition_object *self)
{
    return (plus_rlock_object *)self->lock;
}

static int
check_initialised(const plus_condition_object *self)
{
    if (self->lock != NULL) {
        return 0;
    }
    PyErr_SetString(PyExc_AttributeError, "'Condition' object has no attribute '_lock'");
    return -1;
}

/* Returns 1 or 0, -1 with an exception. */
static int
is_owned(plus_condition_object *self)
{
    if (check_initialised(self) < 0) {
        return -1;
    }
    if (!self->native) {
        return plus_foreign_is_owned(self->lock);
    }
    return self->recursive ? plus_rlock_is_owned(as_rlock(self))
                           : plus_lock_is_locked(plus_condition_lock(self));
}

static int
require_owned(plus_condition_object *self, const char *message)
{
    int owned = is_owned(self);

    if (owned == 0) {
        PyErr_SetString(PyExc_RuntimeError, message);
    }
    return owned > 0 ? 0 : -1;
}

/* The state of the lock that a wait restores afterwards. */
struct saved {
    unsigned long count, owner_ident;
    PyObject *foreign;
};

static int
release_save(plus_condition_object *self, struct plus_waiter *waiter, struct saved *saved)
{
    if (!self->native) {
        plus_waiter_stay(&self->queue, waiter); /* the next call runs Python code */
        saved->foreign = plus_foreign_release_save(self->lock);
        plus_waiter_resumed(waiter);
        return saved->foreign != NULL ? 0 : -1;
    }
    if (!self->recursive) {
        plus_lock_release(plus_condition_lock(self));
        return 0;
    }
    plus_rlock_object *rlock = as_rlock(self);
    saved->count = plus_rlock_count(rlock);
    saved->owner_ident = plus_rlock_owner(rlock);
    plus_rlock_set_count(rlock, 0);
    plus_lock_release(&rlock->lock);
    return 0;
}

/* Takes the lock back.  Keeps a current exception, unless a new one is raised: -1. */
static int
acquire_restore(plus_condition_object *self, struct saved *saved)
{
    if (!self->native) {
        struct plus_raised raised = plus_raised_take();

        int rc = plus_foreign_acquire_restore(self->lock, saved->foreign);
        Py_DECREF(saved->foreign);
        if (rc == 0) {
            plus_raised_put(raised);
            return 0;
        }
        plus_raised_drop(raised);
        return -1;
    }
    if (!self->recursive) {
        return plus_acquire_surely(plus_condition_lock(self));
    }
    plus_rlock_object *rlock = as_rlock(self);
    int result = plus_acquire_surely(&rlock->lock);
    plus_rlock_begin(rlock, saved->count, saved->owner_ident);
    return result;
}

/* ------------------------------------------------------------------------------------------------
 * Waiting
 */

static void
enqueue(plus_condition_object *self, struct plus_waiter *waiter)
{
    plus_waitq_lock(&self->queue);
    plus_waitq_enqueue(&self->queue, waiter);
    plus_waitq_unlock(&self->queue);
}

enum plus_wait_result
plus_condition_sleep(plus_condition_object *self, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    struct plus_lock *lock = plus_condition_lock(self);

    if (plus_check_deadline(deadline_ns) < 0) {
        return PLUS_WAIT_SIGNAL;
    }
    enqueue(self, waiter);
    plus_lock_release(lock);
    enum plus_wait_result result = plus_wait(&self->queue, waiter, deadline_ns);
    if (result == PLUS_WAIT_GRANTED || plus_acquire_surely(lock) == 0) {
        return result;
    }
    /* Wake another waiter instead.  Not for a waiter with `stays`: it belongs to an Event, which wakes all its
     * waiters. */
    if (result == PLUS_WAIT_WOKEN && !waiter->stays) {
        plus_waitq_wake(&self->queue, 1);
    }
    return PLUS_WAIT_SIGNAL;
}

/* Returns 1: notified; 0: timed out; -1 with an exception.  The lock is held before and after. */
static int
wait_until(plus_condition_object *self, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    struct saved saved = {0};

    if (plus_check_deadline(deadline_ns) < 0) {
        return -1;
    }
    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "wait");
    waiter.stays = true;
    enqueue(self, &waiter);
    enum plus_wait_result result = PLUS_WAIT_SIGNAL;
    int failed = release_save(self, &waiter, &saved);

    if (failed) {
        plus_waiter_leave(&self->queue, &waiter);
    }
    else {
        result = plus_wait(&self->queue, &waiter, deadline_ns);
        failed = acquire_restore(self, &saved) < 0 || result == PLUS_WAIT_SIGNAL;
    }
    if (failed && (waiter.heard || result == PLUS_WAIT_WOKEN)) {
        plus_waitq_wake(&self->queue, 1);
    }
    return failed ? -1 : result != PLUS_WAIT_TIMED_OUT;
}

static const struct plus_signature wait_signature = PLUS_SIGNATURE("wait", 0, "timeout");

static PyObject *
condition_wait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    plus_condition_object *self = condition(op);
    PyObject *timeout;
    uint64_t deadline_ns;

    if (plus_arguments(&wait_signature, args, nargs, kwnames, &timeout) < 0) {
        return plus_standard_answer(op, "wait", args, nargs, kwnames);
    }
    if (require_owned(self, "cannot wait on un-acquired lock") < 0) {
        return NULL;
    }
    if (plus_wait_deadline(timeout, &deadline_ns) < 0) {
        return plus_standard_answer(op, "wait", args, nargs, kwnames);
    }
    return plus_truth(wait_until(self, deadline_ns));
}

static const struct plus_signature wait_for_signature =
    PLUS_SIGNATURE("wait_for", 1, "predicate", "timeout");

/* Returns the predicate's value, once it is true or time is up. */
static PyObject *
condition_wait_for(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    plus_condition_object *self = condition(op);
    PyObject *given[2], *value;
    uint64_t deadline_ns = 0;
    bool timed_out = false;
    PyObject *standard = plus_standard_if_touched(op, self->dict, "wait_for");

    if (standard != NULL) {
        return plus_standard_call(standard, op, args, nargs, kwnames);
    }
    if (plus_arguments(&wait_for_signature, args, nargs, kwnames, given) < 0 ||
        plus_wait_deadline(given[1], &deadline_ns) < 0) {
        return plus_standard_answer(op, "wait_for", args, nargs, kwnames);
    }
    for (;;) {
        value = PyObject_CallNoArgs(given[0]);
        int truth = value != NULL ? PyObject_IsTrue(value) : -1;

        if (truth != 0 || timed_out) {
            if (truth < 0) {
                Py_CLEAR(value);
            }
            return value;
        }
        Py_DECREF(value);
        if (require_owned(self, "cannot wait on un-acquired lock") < 0) {
            return NULL;
        }
        int notified = wait_until(self, deadline_ns);
        if (notified < 0) {
            return NULL;
        }
        timed_out = !notified;
    }
}

/* ------------------------------------------------------------------------------------------------
 * Notifying
 */

static const struct plus_signature notify_signature = PLUS_SIGNATURE("notify", 0, "n");

static PyObject *
condition_notify(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    plus_condition_object *self = condition(op);
    PyObject *given = NULL;
    long count = 1;
    int overflow;

    if ((nargs != 0 || kwnames != NULL) &&
        plus_arguments(&notify_signature, args, nargs, kwnames, &given) < 0) {
        return plus_standard_answer(op, "notify", args, nargs, kwnames);
    }
    if (given != NULL) {
        count = PyLong_AsLongAndOverflow(given, &overflow);
        if (count == -1 && PyErr_Occurred()) {
            return plus_standard_answer(op, "notify", args, nargs, kwnames);
        }
        count = overflow > 0 ? (long)UINT32_MAX : count;
    }
    if (require_owned(self, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    if (count > 0) {
        plus_condition_notify(self, count > (long)UINT32_MAX ? UINT32_MAX : (uint32_t)count);
    }
    Py_RETURN_NONE;
}

static PyObject *
condition_notify_all(PyObject *op, PyObject *ignored)
{
    plus_condition_object *self = condition(op);
    PyObject *standard = plus_standard_if_touched(op, self->dict, "notify_all");

    if (standard != NULL) {
        return plus_standard_call(standard, op, NULL, 0, NULL);
    }
    if (require_owned(self, "cannot notify on un-acquired lock") < 0) {
        return NULL;
    }
    plus_condition_notify(self, UINT32_MAX);
    Py_RETURN_NONE;
}

static PyObject *
condition_notify_all_old(PyObject *op, PyObject *ignored)
{
    if (PyErr_WarnEx(PyExc_DeprecationWarning,
                     "notifyAll() is deprecated, use notify_all() instead", 1) < 0) {
        return NULL;
    }
    return condition_notify_all(op, NULL);
}

/* ------------------------------------------------------------------------------------------------
 * Acquiring and releasing
 */

/* Calls a method of the condition's lock. */
static PyObject *
call_lock(const plus_condition_object *self, const char *name, PyObject *const *args,
          Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *method =
        check_initialised(self) < 0 ? NULL : PyObject_GetAttrString(self->lock, name);
    PyObject *result =
        method != NULL ? PyObject_Vectorcall(method, args, (size_t)nargs, kwnames) : NULL;

    Py_XDECREF(method);
    return result;
}

static PyObject *
condition_acquire(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return call_lock(condition(op), "acquire", args, nargs, kwnames);
}

static PyObject *
condition_enter(PyObject *op, PyObject *ignored)
{
    plus_condition_object *self = condition(op);
    int rc;

    if (self->recursive) {
        rc = plus_rlock_acquire(as_rlock(self), PLUS_FUTEX_NO_DEADLINE);
    }
    else if (self->native) {
        rc = plus_condition_enter(self);
    }
    else {
        return call_lock(self, "__enter__", NULL, 0, NULL);
    }
    if (rc < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static inline int
release(plus_condition_object *self)
{
    if (self->recursive) {
        return plus_rlock_release(as_rlock(self));
    }
    if (plus_lock_release(plus_condition_lock(self)) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return -1;
    }
    return 0;
}

static PyObject *
condition_release(PyObject *op, PyObject *ignored)
{
    plus_condition_object *self = condition(op);

    return self->native ? plus_none(release(self)) : call_lock(self, "release", NULL, 0, NULL);
}

static PyObject *
condition_exit(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    plus_condition_object *self = condition(op);

    return self->native ? plus_none(release(self)) : call_lock(self, "__exit__", args, nargs, NULL);
}

PLUS_RETURNS(condition_locked, call_lock(condition(self), "locked", NULL, 0, NULL))

/* ------------------------------------------------------------------------------------------------
 * Parts that users of threading.Condition use
 */

PLUS_RETURNS(condition_is_owned, plus_truth(is_owned(condition(self))))

PLUS_RETURNS(condition_release_save, check_initialised(condition(self)) < 0
                                         ? NULL
                                         : plus_foreign_release_save(condition(self)->lock))

PLUS_RETURNS(condition_acquire_restore,
             check_initialised(condition(self)) < 0
                 ? NULL
                 : plus_none(plus_foreign_acquire_restore(condition(self)->lock, arg)))

int
plus_condition_reinit(plus_condition_object *self)
{
    if (check_initialised(self) < 0 || plus_foreign_call(self->lock, "_at_fork_reinit") < 0) {
        return -1;
    }
    plus_waitq_wake(&self->queue, UINT32_MAX);
    return 0;
}

PLUS_RETURNS(condition_reinit, plus_none(plus_condition_reinit(condition(self))))
PLUS_GETS(condition_get_lock,
          check_initialised(condition(self)) < 0 ? NULL : Py_NewRef(condition(self)->lock))

static Py_ssize_t
count_waiters(plus_condition_object *self)
{
    plus_waitq_lock(&self->queue);
    Py_ssize_t length = (Py_ssize_t)plus_waitq_length(&self->queue);
    plus_waitq_unlock(&self->queue);
    return length;
}

/* Returns the deque in which threading.Condition's own functions keep their waiters, with a stand-in for each thread
 * that waits here. */
static PyObject *
condition_get_waiters(PyObject *op, void *closure)
{
    plus_condition_object *self = condition(op);
    PyObject *known = self->waiters != NULL ? self->waiters : Py_None;
    PyObject *waiters = plus_call_from("cpythonplus.threads._insides", "renew_waiters", "(OOn)", op,
                                       known, count_waiters(self));

    if (waiters == NULL || waiters == known) {
        return waiters;
    }
    PyObject *kept; /* another thread may have made one meanwhile */
    PLUS_BEGIN_LOCKED(op);
    if (self->waiters == NULL) {
        self->waiters = Py_NewRef(waiters);
    }
    kept = Py_NewRef(self->waiters);
    PLUS_END_LOCKED();
    Py_DECREF(waiters);
    return kept;
}

uint32_t
plus_condition_notify_standard(plus_condition_object *self, uint32_t count)
{
    struct plus_raised raised = plus_raised_take();

    PyObject *left = plus_call_from("cpythonplus.threads._insides", "notify_standard", "(OI)",
                                    self->waiters, count);
    if (left != NULL) {
        count = (uint32_t)PyLong_AsUnsignedLong(left);
    }
    else {
        PyErr_WriteUnraisable((PyObject *)self);
    }
    Py_XDECREF(left);
    plus_raised_put(raised);
    return count;
}

PLUS_RETURNS(condition_statistics, plus_statistics_of(&condition(self)->queue))

static PyObject *
condition_repr(PyObject *op)
{
    if (check_initialised(condition(op)) < 0) {
        return NULL;
    }
    return PyUnicode_FromFormat("<Condition(%R, %zd)>", condition(op)->lock,
                                count_waiters(condition(op)));
}

/* ------------------------------------------------------------------------------------------------
 * Making and freeing
 */

static void
set_lock(plus_condition_object *self, const struct plus_threads_state *state, PyObject *lock)
{
    PyObject *old = self->lock;

    self->recursive = Py_IS_TYPE(lock, state->rlock);
    self->native =
        self->recursive || Py_IS_TYPE(lock, state->lock) || Py_IS_TYPE(lock, state->callable_lock);
    self->lock = lock;
    Py_XDECREF(old);
}

static plus_condition_object *
allocate(PyTypeObject *type)
{
    plus_condition_object *self = (plus_condition_object *)type->tp_alloc(type, 0);

    if (self != NULL) {
        plus_waitq_init(&self->queue);
    }
    return self;
}

/* Initialises a condition over `lock`, or over a new RLock. */
static int
initialise(plus_condition_object *self, struct plus_threads_state *state, PyObject *lock)
{
    lock = lock == NULL || lock == Py_None ? PyObject_CallNoArgs((PyObject *)state->rlock)
                                           : Py_NewRef(lock);
    if (lock == NULL) {
        return -1;
    }
    set_lock(self, state, lock);
    return 0;
}

plus_condition_object *
plus_condition_new(struct plus_threads_state *state, PyObject *lock)
{
    lock = lock != NULL ? Py_NewRef(lock) : plus_lock_new(state);
    plus_condition_object *self = lock != NULL ? allocate(state->condition) : NULL;

    if (self == NULL) {
        Py_XDECREF(lock);
        return NULL;
    }
    set_lock(self, state, lock);
    return self;
}

int
plus_condition_provide(PyObject *op, plus_condition_object **field,
                       struct plus_threads_state *state)
{
    if (*field != NULL) {
        return 0;
    }
    plus_condition_object *made = plus_condition_new(state, NULL);
    if (made == NULL) {
        return -1;
    }
    /* A collection may have run code that initialised it meanwhile, or another thread has. */
    PLUS_BEGIN_LOCKED(op);
    if (*field == NULL) {
        *field = made;
        made = NULL;
    }
    PLUS_END_LOCKED();
    Py_XDECREF(made);
    return 0;
}

static PyObject *
condition_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return (PyObject *)allocate(type);
}

static const struct plus_signature init_signature = PLUS_SIGNATURE("Condition", 0, "lock");

/* Checks that a foreign lock has the methods that a condition calls, as threading.Condition does. */
static int
check_lock(PyObject *lock)
{
    static const char *const names[] = {
        "acquire",
        "release",
#if PY_VERSION_HEX >= 0x030E0000
        "locked",
#endif
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        PyObject *method = PyObject_GetAttrString(lock, names[i]);

        if (method == NULL) {
            return -1;
        }
        Py_DECREF(method);
    }
    return 0;
}

static int
condition_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    struct plus_threads_state *state = plus_threads_state(Py_TYPE(op));
    PyObject *lock;

    if (state == NULL || plus_init_arguments(&init_signature, args, kwargs, &lock) < 0 ||
        (lock != NULL && lock != Py_None && check_lock(lock) < 0)) {
        return -1;
    }
    return initialise(condition(op), state, lock);
}

static PyObject *
condition_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct plus_threads_state *state = plus_threads_state((PyTypeObject *)type);
    PyObject *lock;

    if (state == NULL ||
        plus_arguments(&init_signature, args, PyVectorcall_NARGS(nargsf), kwnames, &lock) < 0 ||
        (lock != NULL && lock != Py_None && check_lock(lock) < 0)) {
        return NULL;
    }
    plus_condition_object *self = allocate((PyTypeObject *)type);
    if (self != NULL && initialise(self, state, lock) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
condition_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(condition(op)->lock);
    Py_VISIT(condition(op)->waiters);
    Py_VISIT(condition(op)->dict);
    return 0;
}

static int
condition_clear(PyObject *op)
{
    Py_CLEAR(condition(op)->lock);
    Py_CLEAR(condition(op)->waiters);
    Py_CLEAR(condition(op)->dict);
    return 0;
}

PyDoc_STRVAR(condition_doc,
             "Condition(lock=None)\n--\n\n"
             "A condition variable: threading.Condition.\n\n"
             "lock: a Lock or RLock, or any object with acquire() and release(); None: a new\n"
             "RLock.  Threads are notified in the order in which they began to wait.");

static PyMethodDef condition_methods[] = {
    PLUS_METHOD_KW("wait", condition_wait, METH_FASTCALL | METH_KEYWORDS, "$self, /, timeout=None",
                   "Release the lock, wait to be notified, acquire it again.\n\n"
                   "timeout: seconds; None: without limit.  Returns False when the time was up.\n"
                   "Raises RuntimeError when the lock is not held."),
    PLUS_METHOD_KW(
        "wait_for", condition_wait_for, METH_FASTCALL | METH_KEYWORDS,
        "$self, /, predicate, timeout=None",
        "Wait until the callable `predicate` returns a true value; return that value.\n\n"
        "timeout: seconds in all; None: without limit.  When the time is up, the last\n"
        "value is returned, true or not."),
    PLUS_METHOD_KW("notify", condition_notify, METH_FASTCALL | METH_KEYWORDS, "$self, /, n=1",
                   "Wake up to n waiting threads.  They go on when the lock is released.\n\n"
                   "Raises RuntimeError when the lock is not held."),
    PLUS_METHOD("notify_all", condition_notify_all, METH_NOARGS, "$self, /",
                "Wake all waiting threads."),
    PLUS_METHOD("notifyAll", condition_notify_all_old, METH_NOARGS, "$self, /",
                "Deprecated name of notify_all()."),
    PLUS_METHOD_KW("acquire", condition_acquire, METH_FASTCALL | METH_KEYWORDS,
                   "$self, /, *args, **kwargs", "Acquire the lock: its acquire()."),
    PLUS_METHOD("release", condition_release, METH_NOARGS, "$self, /",
                "Release the lock: its release()."),
    PLUS_METHOD("locked", condition_locked, METH_NOARGS, "$self, /",
                "Return whether the lock is held: its locked()."),
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", condition_statistics, METH_NOARGS, plus_statistics_doc},
    PLUS_METHOD("__enter__", condition_enter, METH_NOARGS, "$self, /", "Acquire the lock."),
    PLUS_METHOD_KW("__exit__", condition_exit, METH_FASTCALL, "$self, /, *args",
                   "Release the lock."),
    PLUS_METHOD("_is_owned", condition_is_owned, METH_NOARGS, "$self, /",
                "Return whether this thread has the lock."),
    PLUS_METHOD("_release_save", condition_release_save, METH_NOARGS, "$self, /",
                "Free the lock, however often acquired; return what that was."),
    PLUS_METHOD("_acquire_restore", condition_acquire_restore, METH_O, "$self, x, /",
                "Acquire the lock as often as it was before _release_save()."),
    {"_at_fork_reinit", condition_reinit, METH_NOARGS, plus_reinit_doc},
    PLUS_STANDARD_METHODS,
    {NULL, NULL, 0, NULL},
};

static PyMemberDef condition_members[] = {
    PLUS_STANDARD_MEMBERS(plus_condition_object),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef condition_getset[] = {
    {"_lock", condition_get_lock, NULL, NULL, NULL},
    {"_waiters", condition_get_waiters, NULL, NULL, NULL},
    PLUS_STANDARD_GETSET,
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot condition_slots[] = {
    {Py_tp_new, condition_new},
    {Py_tp_init, condition_init},
    {Py_tp_dealloc, plus_dealloc},
    {Py_tp_traverse, condition_traverse},
    {Py_tp_clear, condition_clear},
    {Py_tp_repr, condition_repr},
    {Py_tp_methods, condition_methods},
    {Py_tp_members, condition_members},
    {Py_tp_getset, condition_getset},
    {Py_tp_doc, (void *)condition_doc},
    {0, NULL},
};

int
plus_condition_exec(PyObject *module, struct plus_threads_state *state)
{
    if (plus_add_type(module, &state->condition, "Condition", "threading.Condition",
                      sizeof(plus_condition_object), Py_TPFLAGS_HAVE_GC, condition_slots,
                      NULL) < 0) {
        return -1;
    }
    state->condition->tp_vectorcall = condition_vectorcall; /* no slot for it before 3.14 */
    return 0;
}
