/* Semaphore and BoundedSemaphore: those of threading.
 *
 * As in the standard library, a semaphore is a counter and a condition over a plain lock; users may use _cond and
 * _value. If the first waiter has waited for more than a millisecond, a release gives it the permit instead of
 * counting it.
 */
#include "condition_py.h"

#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_base/process/futex.h"
#include "../arguments.h"
#include "../statistics_py.h"

#include <limits.h>

typedef struct {
    PyObject_HEAD plus_condition_object *cond;
    _Atomic Py_ssize_t value;   /* written under the condition's lock; repr() reads it without */
    _Atomic Py_ssize_t initial; /* of a BoundedSemaphore, else -1 */
    PyObject *dict, *weakrefs;
} semaphore_object;

static inline semaphore_object *
semaphore(PyObject *op)
{
    return (semaphore_object *)op;
}

static inline Py_ssize_t
permits(const semaphore_object *self)
{
    return atomic_load_explicit(&self->value, memory_order_relaxed);
}

/* Called with the condition's lock held, and so no locked instruction is needed. */
static inline void
add_permits(semaphore_object *self, Py_ssize_t count)
{
    atomic_store_explicit(&self->value, permits(self) + count, memory_order_relaxed);
}

static int
check_initialised(const semaphore_object *self)
{
    if (self->cond != NULL) {
        return 0;
    }
    PyErr_SetString(PyExc_AttributeError, "'Semaphore' object has no attribute '_cond'");
    return -1;
}

/* Called with the condition's lock held.  Gives one permit to a starving waiter; false: there is none. */
static bool
grant_permit(semaphore_object *self)
{
    struct plus_waitq *queue = &self->cond->queue;
    _Atomic uint32_t *sleeper = NULL;
    uint64_t now = plus_now_ns();

    plus_waitq_lock(queue);
    bool granted = plus_waitq_starves(queue, now) && queue->head->takes;
    if (granted) {
        queue->handed_over_ns = now;
        queue->counts.hand_overs++;
        sleeper = plus_waitq_end(queue, queue->head, PLUS_WAITER_GRANTED);
    }
    plus_waitq_unlock(queue);
    plus_waitq_rouse(sleeper);
    return granted;
}

static void
release_permits(semaphore_object *self, Py_ssize_t count)
{
    if (plus_waitq_length(&self->cond->queue) > 0 && grant_permit(self)) {
        count--;
    }
    add_permits(self, count);
    if (count > 0) {
        plus_condition_notify(self->cond, count > UINT32_MAX ? UINT32_MAX : (uint32_t)count);
    }
}

/* Called with the lock held and no permit left.  1: got a permit; 2: got one, and the lock is no longer held; 0: timed
 * out; -1: a signal handler raised. */
static int
wait_for_permit(semaphore_object *self, uint64_t deadline_ns)
{
    struct plus_waiter waiter;

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "acquire");
    waiter.takes = true;
    do {
        switch (plus_condition_sleep(self->cond, &waiter, deadline_ns)) {
        case PLUS_WAIT_GRANTED:
            return 2;
        case PLUS_WAIT_TIMED_OUT:
            if (permits(self) == 0) {
                return 0;
            }
            break;
        case PLUS_WAIT_SIGNAL:
            return -1;
        case PLUS_WAIT_WOKEN:
            break;
        }
    } while (permits(self) == 0);
    add_permits(self, -1);
    return 1;
}

/* Returns 1: acquired; 0: not; -1 with an exception. */
static int
acquire(semaphore_object *self, uint64_t deadline_ns)
{
    int acquired = 1;

    if (check_initialised(self) < 0 || plus_condition_enter(self->cond) < 0) {
        return -1;
    }
    if (permits(self) > 0) {
        add_permits(self, -1);
    }
    else {
        acquired = deadline_ns == 0 ? 0 : wait_for_permit(self, deadline_ns);
    }
    if (acquired == 2) {
        return 1;
    }
    plus_condition_leave(self->cond);
    return acquired;
}

static const struct plus_signature acquire_signature =
    PLUS_SIGNATURE("acquire", 0, "blocking", "timeout");

static PyObject *
semaphore_acquire(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *given[2] = {NULL, NULL};
    uint64_t deadline_ns = PLUS_FUTEX_NO_DEADLINE;
    int blocking = 1;

    if ((nargs != 0 || kwnames != NULL) &&
        plus_arguments(&acquire_signature, args, nargs, kwnames, given) < 0) {
        return plus_standard_answer(op, "acquire", args, nargs, kwnames);
    }
    if (given[0] != NULL && (blocking = PyObject_IsTrue(given[0])) < 0) {
        return NULL;
    }
    if (!blocking && given[1] != NULL && given[1] != Py_None) {
        return PyErr_Format(PyExc_ValueError, "can't specify timeout for non-blocking acquire");
    }
    if (blocking && plus_wait_deadline(given[1], &deadline_ns) < 0) {
        return plus_standard_answer(op, "acquire", args, nargs, kwnames);
    }
    return plus_truth(acquire(semaphore(op), blocking ? deadline_ns : 0));
}

/* Returns 0, or -1 with ValueError if a bounded semaphore would exceed its initial value. */
static int
release(semaphore_object *self, Py_ssize_t count)
{
    if (check_initialised(self) < 0 || plus_condition_enter(self->cond) < 0) {
        return -1;
    }
    bool too_many = self->initial >= 0 && permits(self) > self->initial - count;
    if (!too_many && permits(self) > PY_SSIZE_T_MAX - count) {
        plus_condition_leave(self->cond);
        PyErr_SetString(PyExc_OverflowError, "semaphore value is too large");
        return -1;
    }
    if (!too_many) {
        release_permits(self, count);
    }
    plus_condition_leave(self->cond);
    if (too_many) {
        PyErr_SetString(PyExc_ValueError, "Semaphore released too many times");
        return -1;
    }
    return 0;
}

static const struct plus_signature release_signature = PLUS_SIGNATURE("release", 0, "n");

static PyObject *
semaphore_release(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *given = NULL;
    Py_ssize_t count = 1;

    if ((nargs != 0 || kwnames != NULL) &&
        plus_arguments(&release_signature, args, nargs, kwnames, &given) < 0) {
        return plus_standard_answer(op, "release", args, nargs, kwnames);
    }
    if (given != NULL) {
        count = PyNumber_AsSsize_t(given, PyExc_OverflowError);
        if (count == -1 && PyErr_Occurred()) {
            return plus_standard_answer(op, "release", args, nargs, kwnames);
        }
        if (count < 1) {
            return PyErr_Format(PyExc_ValueError, "n must be one or more");
        }
    }
    return plus_none(release(semaphore(op), count));
}

static PyObject *
semaphore_exit(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *standard = plus_standard_if_touched(op, semaphore(op)->dict, "__exit__");

    return standard != NULL ? plus_standard_call(standard, op, args, nargs, NULL)
                            : plus_none(release(semaphore(op), 1));
}

PLUS_RETURNS(semaphore_reinit, check_initialised(semaphore(self)) < 0
                                   ? NULL
                                   : plus_none(plus_condition_reinit(semaphore(self)->cond)))
PLUS_RETURNS(semaphore_statistics, check_initialised(semaphore(self)) < 0
                                       ? NULL
                                       : plus_statistics_of(&semaphore(self)->cond->queue))

static PyObject *
semaphore_repr(PyObject *op)
{
    const semaphore_object *self = semaphore(op);

    return self->initial < 0 ? plus_repr_with(op, "value=%zd", permits(self), 0)
                             : plus_repr_with(op, "value=%zd/%zd", permits(self), self->initial);
}

static const struct plus_signature init_signature = PLUS_SIGNATURE("Semaphore", 0, "value");

static int
initialise(semaphore_object *self, PyObject *args, PyObject *kwargs, bool bounded)
{
    struct plus_threads_state *state = plus_threads_state(Py_TYPE(self));
    PyObject *given;
    Py_ssize_t value = 1;

    if (state == NULL || plus_init_arguments(&init_signature, args, kwargs, &given) < 0) {
        return -1;
    }
    if (given != NULL) {
        value = PyNumber_AsSsize_t(given, PyExc_OverflowError);
        if (value == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    if (value < 0) {
        PyErr_SetString(PyExc_ValueError, "semaphore initial value must be >= 0");
        return -1;
    }
    if (plus_condition_provide((PyObject *)self, &self->cond, state) < 0) {
        return -1;
    }
    atomic_store_explicit(&self->value, value, memory_order_relaxed);
    self->initial = bounded ? value : -1;
    return 0;
}

static int
semaphore_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return initialise(semaphore(op), args, kwargs, false);
}

static int
bounded_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return initialise(semaphore(op), args, kwargs, true);
}

static int
semaphore_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(semaphore(op)->cond);
    Py_VISIT(semaphore(op)->dict);
    return 0;
}

static int
semaphore_clear(PyObject *op)
{
    Py_CLEAR(semaphore(op)->cond);
    Py_CLEAR(semaphore(op)->dict);
    return 0;
}

PyDoc_STRVAR(semaphore_doc, "Semaphore(value=1)\n--\n\n"
                            "A counter of permits: threading.Semaphore.\n\n"
                            "Raises ValueError for a value below zero.");

PyDoc_STRVAR(bounded_doc,
             "BoundedSemaphore(value=1)\n--\n\n"
             "A Semaphore that is never released more often than acquired: release() raises\n"
             "ValueError then.");

PyDoc_STRVAR(release_doc, "release($self, /, n=1)\n--\n\n"
                          "Give n permits back.\n\nRaises ValueError for n below one.");

static PyMethodDef semaphore_methods[] = {
    PLUS_METHOD_KW(
        "acquire", semaphore_acquire, METH_FASTCALL | METH_KEYWORDS,
        "$self, /, blocking=True, timeout=None",
        "Take one permit and return whether that succeeded.\n\n"
        "timeout: seconds to wait at most; None: without limit.  Raises ValueError for a\n"
        "time-out with blocking=False, OverflowError for one above threading.TIMEOUT_MAX."),
    {"release", PLUS_KEYWORDS(semaphore_release), release_doc},
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", semaphore_statistics, METH_NOARGS, plus_statistics_doc},
    PLUS_METHOD_KW("__enter__", semaphore_acquire, METH_FASTCALL | METH_KEYWORDS,
                   "$self, /, blocking=True, timeout=None", "The same as acquire()."),
    PLUS_METHOD_KW("__exit__", semaphore_exit, METH_FASTCALL, "$self, t, v, tb, /",
                   "Give the permit back."),
    {"_at_fork_reinit", semaphore_reinit, METH_NOARGS, plus_reinit_doc},
    PLUS_STANDARD_METHODS,
    {NULL, NULL, 0, NULL},
};

/* A separate entry, as in the standard class: replacing Semaphore.release() does not affect this one. */
static PyMethodDef bounded_methods[] = {
    {"release", PLUS_KEYWORDS(semaphore_release), release_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef semaphore_members[] = {
    PLUS_STANDARD_MEMBERS(semaphore_object),
    {"_cond", Py_T_OBJECT_EX, offsetof(semaphore_object, cond), Py_READONLY, NULL},
    {"_value", Py_T_PYSSIZET, offsetof(semaphore_object, value), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef bounded_members[] = {
    {"_initial_value", Py_T_PYSSIZET, offsetof(semaphore_object, initial), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot semaphore_slots[] = {
    {Py_tp_init, semaphore_init},         {Py_tp_dealloc, plus_dealloc},
    {Py_tp_traverse, semaphore_traverse}, {Py_tp_clear, semaphore_clear},
    {Py_tp_repr, semaphore_repr},         {Py_tp_methods, semaphore_methods},
    {Py_tp_members, semaphore_members},   {Py_tp_getset, plus_standard_getset},
    {Py_tp_doc, (void *)semaphore_doc},   {0, NULL},
};

static PyType_Slot bounded_slots[] = {
    {Py_tp_init, bounded_init},
    {Py_tp_methods, bounded_methods},
    {Py_tp_members, bounded_members},
    {Py_tp_doc, (void *)bounded_doc},
    {0, NULL},
};

int
plus_semaphore_exec(PyObject *module, struct plus_threads_state *state)
{
    const size_t size = sizeof(semaphore_object);

    if (plus_add_type(module, &state->semaphore, "Semaphore", "threading.Semaphore", size,
                      Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, semaphore_slots, NULL) < 0) {
        return -1;
    }
    int rc = plus_add_type(module, &state->bounded_semaphore, "BoundedSemaphore",
                           "threading.BoundedSemaphore", size, 0, bounded_slots, state->semaphore);
    state->semaphore->tp_flags &= ~Py_TPFLAGS_BASETYPE; /* no subclasses: standard.h */
    return rc;
}
