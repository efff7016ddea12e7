/* Lock: threading.Lock. */
#include "binding.h"

#include <stddef.h>

static PyObject *
make_lock(PyTypeObject *type, bool arguments)
{
    if (arguments) {
        PyErr_SetString(PyExc_TypeError, "Lock() takes no arguments");
        return NULL;
    }
    plus_lock_object *self = PyObject_New(plus_lock_object, type);
    if (self == NULL) {
        return NULL;
    }
    plus_lock_init(&self->lock);
    self->weakrefs = NULL;
    return (PyObject *)self;
}

static PyObject *
lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return make_lock(type, PyTuple_GET_SIZE(args) != 0 ||
                               (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0));
}

static PyObject *
lock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return make_lock((PyTypeObject *)type, PyVectorcall_NARGS(nargsf) != 0 || kwnames != NULL);
}

static void
lock_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    if (((plus_lock_object *)op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    PyObject_Free(op);
    Py_DECREF(type);
}

/* The arguments are wrong: the interpreter's own lock says so in its words. */
static PyObject *
answer_of_stock_lock(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    struct plus_threads_state *state = plus_threads_state(Py_TYPE(op));
    PyObject *type, *value, *traceback, *acquire, *result;

    if (state == NULL || state->stock_lock == NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return NULL;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *stock = PyObject_CallNoArgs(state->stock_lock);
    acquire = stock != NULL ? PyObject_GetAttrString(stock, "acquire") : NULL;
    result = acquire != NULL ? PyObject_Vectorcall(acquire, args, (size_t)nargs, kwnames) : NULL;
    if (result != NULL) { /* it does not mind; ours does */
        Py_CLEAR(result);
        PyErr_Restore(type, value, traceback);
    }
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(acquire);
    Py_XDECREF(stock);
    return NULL;
}

static PyObject *
lock_acquire(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    struct plus_lock *lock = &((plus_lock_object *)op)->lock;
    uint64_t deadline_ns;

    if (plus_acquire_arguments(args, nargs, kwnames, &deadline_ns) < 0) {
        return answer_of_stock_lock(op, args, nargs, kwnames);
    }
    if (plus_lock_try(lock, plus_identity())) {
        Py_RETURN_TRUE;
    }
    if (deadline_ns == 0) {
        Py_RETURN_FALSE;
    }
    int acquired = plus_acquire(lock, deadline_ns);
    return acquired < 0 ? NULL : PyBool_FromLong(acquired);
}

static PyObject *
lock_enter(PyObject *op, PyObject *ignored)
{
    struct plus_lock *lock = &((plus_lock_object *)op)->lock;

    if (plus_lock_enter(lock) < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *
lock_release(PyObject *op, PyObject *ignored)
{
    if (plus_lock_release(&((plus_lock_object *)op)->lock) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
lock_exit(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    return lock_release(op, NULL);
}

static PyObject *
lock_locked(PyObject *op, PyObject *ignored)
{
    return PyBool_FromLong(plus_lock_is_locked(&((plus_lock_object *)op)->lock));
}

static PyObject *
lock_reinit(PyObject *op, PyObject *ignored)
{
    plus_lock_reinit(&((plus_lock_object *)op)->lock);
    Py_RETURN_NONE;
}

static PyObject *
lock_statistics(PyObject *op, PyObject *ignored)
{
    return plus_statistics_of(&((plus_lock_object *)op)->lock.queue);
}

static PyObject *
lock_repr(PyObject *op)
{
    bool locked = plus_lock_is_locked(&((plus_lock_object *)op)->lock);

    return PyUnicode_FromFormat("<%s %s object at %p>", locked ? "locked" : "unlocked",
                                Py_TYPE(op)->tp_name, op);
}

PyDoc_STRVAR(lock_doc,
             "lock()\n--\n\n"
             "A mutual exclusion lock that any thread may release: threading.Lock.\n\n"
             "A waiter polls for some microseconds before it sleeps, where that pays, and\n"
             "one that has waited for a millisecond is served before all others.");

PyDoc_STRVAR(acquire_doc,
             "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
             "Acquire the lock and return whether that succeeded.\n\n"
             "timeout: seconds to wait at most; -1: without limit.  A signal handler that\n"
             "raises ends the wait.  Raises ValueError for another negative time-out, for one\n"
             "that is not a number, or for one with blocking=False; OverflowError for one\n"
             "above threading.TIMEOUT_MAX.");

PyDoc_STRVAR(release_doc, "release($self, /)\n--\n\n"
                          "Release the lock, from whichever thread.\n\n"
                          "Raises RuntimeError when it is not held.");

PyDoc_STRVAR(locked_doc, "locked($self, /)\n--\n\nReturn whether the lock is held.");

static PyMethodDef lock_methods[] = {
    {"acquire", PLUS_KEYWORDS(lock_acquire), acquire_doc},
    {"release", lock_release, METH_NOARGS, release_doc},
    {"locked", lock_locked, METH_NOARGS, locked_doc},
    {"acquire_lock", PLUS_KEYWORDS(lock_acquire), PyDoc_STR("An old name of acquire().")},
    {"release_lock", lock_release, METH_NOARGS, PyDoc_STR("An old name of release().")},
    {"locked_lock", lock_locked, METH_NOARGS, PyDoc_STR("An old name of locked().")},
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", lock_statistics, METH_NOARGS, plus_statistics_doc},
    {"__enter__", lock_enter, METH_NOARGS, NULL},
    {"__exit__", PLUS_FAST(lock_exit), NULL},
    {"_at_fork_reinit", lock_reinit, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef lock_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(plus_lock_object, weakrefs), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lock_slots[] = {
    {Py_tp_new, lock_new},
    {Py_tp_dealloc, lock_dealloc},
    {Py_tp_repr, lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_members, lock_members},
    {Py_tp_doc, (void *)lock_doc},
    {0, NULL},
};

static PyType_Spec lock_spec = {
    .name = "_thread.lock",
    .basicsize = sizeof(plus_lock_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = lock_slots,
};

/* Another package (gevent) may have put its own in the place. */
static int
find_stock_lock(struct plus_threads_state *state)
{
    PyObject *allocate = plus_import_from("_thread", "allocate_lock");

    if (allocate == NULL) {
        return -1;
    }
    if (PyCFunction_Check(allocate) || PyType_Check(allocate)) {
        state->stock_lock = allocate;
    }
    else {
        Py_DECREF(allocate);
    }
    return 0;
}

int
plus_lock_exec(PyObject *module, struct plus_threads_state *state)
{
    state->lock = plus_add_type(module, "Lock", &lock_spec, NULL);
    if (state->lock == NULL) {
        return -1;
    }
    state->lock->tp_vectorcall = lock_vectorcall; /* no slot for it before 3.14 */
    return find_stock_lock(state);
}
