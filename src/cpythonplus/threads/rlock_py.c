/* RLock: threading.RLock. */
#include "binding.h"

#include "../_base/futex.h"

#include <limits.h>
#include <stddef.h>

static inline plus_rlock_object *
rlock(PyObject *op)
{
    return (plus_rlock_object *)op;
}

int
plus_rlock_acquire_slowly(plus_rlock_object *self, uint64_t deadline_ns)
{
    if (plus_rlock_is_owned(self)) {
        if (self->count == ULONG_MAX) {
            PyErr_SetString(PyExc_OverflowError, "internal lock count overflowed");
            return -1;
        }
        self->count++;
        return 1;
    }
    if (!plus_lock_try(&self->lock, plus_identity())) {
        int acquired = deadline_ns == 0 ? 0 : plus_acquire(&self->lock, deadline_ns);
        if (acquired <= 0) {
            return acquired;
        }
    }
    plus_rlock_begin(self, 1);
    return 1;
}

int
plus_rlock_release_slowly(plus_rlock_object *self)
{
    if (!plus_rlock_is_owned(self)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return -1;
    }
    if (--self->count == 0) {
        plus_lock_release(&self->lock);
    }
    return 0;
}

static PyObject *
rlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    plus_rlock_object *self = (plus_rlock_object *)type->tp_alloc(type, 0);

    if (self != NULL) {
        plus_lock_init(&self->lock);
    }
    return (PyObject *)self;
}

/* What threading.RLock of the running version says to arguments: they were always ignored, then
 * deprecated, then removed. */
static int
refuse_arguments(bool given)
{
#if PY_VERSION_HEX >= 0x030F0000
    if (given) {
        PyErr_SetString(PyExc_TypeError, "RLock() takes no arguments");
        return -1;
    }
#elif PY_VERSION_HEX >= 0x030D0000
    if (given) {
        return PyErr_WarnEx(PyExc_DeprecationWarning,
                            "Passing arguments to RLock is deprecated and will be removed in 3.15",
                            1);
    }
#endif
    return 0;
}

static int
rlock_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return refuse_arguments(PyTuple_GET_SIZE(args) != 0 ||
                            (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0));
}

static PyObject *
rlock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (refuse_arguments(PyVectorcall_NARGS(nargsf) != 0 || kwnames != NULL) < 0) {
        return NULL;
    }
    return rlock_new((PyTypeObject *)type, NULL, NULL);
}

static void
rlock_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    if (rlock(op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
rlock_acquire(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    uint64_t deadline_ns;

    if (plus_acquire_arguments(args, nargs, kwnames, &deadline_ns) < 0) {
        return NULL;
    }
    int acquired = plus_rlock_acquire(rlock(op), deadline_ns);
    return acquired < 0 ? NULL : PyBool_FromLong(acquired);
}

static PyObject *
rlock_enter(PyObject *op, PyObject *ignored)
{
    if (plus_rlock_acquire(rlock(op), PLUS_FUTEX_NO_DEADLINE) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *
rlock_release(PyObject *op, PyObject *ignored)
{
    if (plus_rlock_release(rlock(op)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
rlock_exit(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    return rlock_release(op, NULL);
}

static PyObject *
rlock_locked(PyObject *op, PyObject *ignored)
{
    return PyBool_FromLong(plus_lock_is_locked(&rlock(op)->lock));
}

static PyObject *
rlock_is_owned(PyObject *op, PyObject *ignored)
{
    return PyBool_FromLong(plus_rlock_is_owned(rlock(op)));
}

static PyObject *
rlock_recursion_count(PyObject *op, PyObject *ignored)
{
    return PyLong_FromUnsignedLong(plus_rlock_is_owned(rlock(op)) ? rlock(op)->count : 0);
}

static PyObject *
rlock_release_save(PyObject *op, PyObject *ignored)
{
    plus_rlock_object *self = rlock(op);

    if (!plus_rlock_is_owned(self)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return NULL;
    }
    PyObject *saved = Py_BuildValue("kk", self->count, self->owner_ident);
    if (saved != NULL) {
        self->count = 0;
        plus_lock_release(&self->lock);
    }
    return saved;
}

static PyObject *
rlock_acquire_restore(PyObject *op, PyObject *saved)
{
    unsigned long count, owner;

    if (!PyTuple_Check(saved)) {
        PyErr_SetString(PyExc_TypeError, "_acquire_restore() needs what _release_save() returned");
        return NULL;
    }
    if (!PyArg_ParseTuple(saved, "kk:_acquire_restore", &count, &owner)) {
        return NULL;
    }
    if (count == 0) {
        Py_RETURN_NONE; /* of a lock that nobody had, as a pickle of one may say */
    }
    plus_acquire_surely(&rlock(op)->lock);
    plus_rlock_begin(rlock(op), count);
    Py_RETURN_NONE;
}

static PyObject *
rlock_reinit(PyObject *op, PyObject *ignored)
{
    plus_lock_reinit(&rlock(op)->lock);
    rlock(op)->count = 0;
    Py_RETURN_NONE;
}

static PyObject *
rlock_statistics(PyObject *op, PyObject *ignored)
{
    return plus_statistics_of(&rlock(op)->lock.queue);
}

static PyObject *
rlock_repr(PyObject *op)
{
    plus_rlock_object *self = rlock(op);
    bool locked = plus_lock_is_locked(&self->lock);

    return PyUnicode_FromFormat("<%s %s object owner=%ld count=%lu at %p>",
                                locked ? "locked" : "unlocked", Py_TYPE(op)->tp_name,
                                locked ? (long)self->owner_ident : 0L, locked ? self->count : 0UL,
                                op);
}

PyDoc_STRVAR(rlock_doc,
             "RLock()\n--\n\n"
             "A re-entrant lock, released by the thread that acquired it: threading.RLock.\n\n"
             "It waits as Lock does.");

PyDoc_STRVAR(acquire_doc,
             "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
             "Acquire the lock, once more if this thread has it; return whether that succeeded.\n\n"
             "timeout: seconds to wait at most; -1: without limit.  A signal handler that\n"
             "raises ends the wait.  Raises ValueError for another negative time-out, for one\n"
             "that is not a number, or for one with blocking=False; OverflowError for one\n"
             "above threading.TIMEOUT_MAX.");

PyDoc_STRVAR(release_doc, "release($self, /)\n--\n\n"
                          "Undo one acquisition; the last one frees the lock.\n\n"
                          "Raises RuntimeError when this thread does not have it.");

PyDoc_STRVAR(locked_doc, "locked($self, /)\n--\n\nReturn whether any thread has the lock.");

static PyMethodDef rlock_methods[] = {
    {"acquire", PLUS_KEYWORDS(rlock_acquire), acquire_doc},
    {"release", rlock_release, METH_NOARGS, release_doc},
    {"locked", rlock_locked, METH_NOARGS, locked_doc},
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", rlock_statistics, METH_NOARGS, plus_statistics_doc},
    {"__enter__", rlock_enter, METH_NOARGS, NULL},
    {"__exit__", PLUS_FAST(rlock_exit), NULL},
    {"_is_owned", rlock_is_owned, METH_NOARGS, NULL},
    {"_recursion_count", rlock_recursion_count, METH_NOARGS, NULL},
    {"_release_save", rlock_release_save, METH_NOARGS, NULL},
    {"_acquire_restore", rlock_acquire_restore, METH_O, NULL},
    {"_at_fork_reinit", rlock_reinit, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef rlock_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(plus_rlock_object, weakrefs), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot rlock_slots[] = {
    {Py_tp_new, rlock_new},         {Py_tp_init, rlock_init},
    {Py_tp_dealloc, rlock_dealloc}, {Py_tp_repr, rlock_repr},
    {Py_tp_methods, rlock_methods}, {Py_tp_members, rlock_members},
    {Py_tp_doc, (void *)rlock_doc}, {0, NULL},
};

static PyType_Spec rlock_spec = {
    .name = "_thread.RLock",
    .basicsize = sizeof(plus_rlock_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = rlock_slots,
};

int
plus_rlock_exec(PyObject *module, struct plus_threads_state *state)
{
    state->rlock = plus_add_type(module, "RLock", &rlock_spec, NULL);
    if (state->rlock == NULL) {
        return -1;
    }
    state->rlock->tp_vectorcall = rlock_vectorcall; /* no slot for it before 3.14 */
    return 0;
}
