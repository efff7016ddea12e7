/* Lock and RLock: those of threading.  The object of an RLock begins like that of a Lock, and some methods serve
 * both. */
#include "lock_py.h"

#include "../../_base/methods.h"
#include "../../_base/process/futex.h"
#include "../../_base/raise.h"
#include "../../gil/binding.h"
#include "../arguments.h"
#include "../statistics_py.h"

#include <limits.h>

static inline struct plus_lock *
inside(PyObject *op)
{
    return &((plus_lock_object *)op)->lock;
}

static PyObject *
make_lock(PyTypeObject *type, bool arguments)
{
    if (arguments) {
        return PyErr_Format(PyExc_TypeError, "Lock() takes no arguments");
    }
    plus_lock_object *self = PyObject_New(plus_lock_object, type);
    if (self == NULL) {
        return NULL;
    }
    plus_lock_init(&self->lock);
    self->weakrefs = NULL;
    plus_maker_note(&self->maker);
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

PyObject *
plus_lock_new(const struct plus_threads_state *state)
{
    return make_lock(state->lock, false);
}

static void
lock_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    if (((plus_lock_object *)op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    if (inside(op)->queue.looked != 0) {
        plus_stalls_forget_lock(inside(op));
    }
    Py_XDECREF(((plus_lock_object *)op)->maker.code);
    type->tp_free(op);
    Py_DECREF(type);
}

static inline int
lock_take(PyObject *op, uint64_t deadline_ns)
{
    if (plus_lock_try(inside(op), plus_identity())) {
        return 1;
    }
    return deadline_ns == 0 ? 0 : plus_acquire(inside(op), deadline_ns);
}

static inline int
lock_give(PyObject *op)
{
    if (plus_lock_release(inside(op)) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return -1;
    }
    return 0;
}

#define PLUS_LOCK(name) lock_##name
#include "lock_methods.h"

PLUS_RETURNS(lock_locked, PyBool_FromLong(plus_lock_is_locked(inside(self))))

/* For wrong arguments: raises the exception of the interpreter's own lock. */
static PyObject *
answer_of_stock_lock(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    struct plus_threads_state *state = plus_threads_state(Py_TYPE(op));
    PyObject *acquire, *result;

    if (state == NULL || state->stock_lock == NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return NULL;
    }
    struct plus_raised raised = plus_raised_take();
    PyObject *stock = PyObject_CallNoArgs(state->stock_lock);
    acquire = stock != NULL ? PyObject_GetAttrString(stock, "acquire") : NULL;
    result = acquire != NULL ? PyObject_Vectorcall(acquire, args, (size_t)nargs, kwnames) : NULL;
    if (result != NULL) { /* the stock lock accepts the arguments, ours does not */
        Py_CLEAR(result);
        plus_raised_put(raised);
    }
    else {
        plus_raised_drop(raised);
    }
    Py_XDECREF(acquire);
    Py_XDECREF(stock);
    return NULL;
}

static PyObject *
lock_acquire_or_answer(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *acquired = lock_acquire(op, args, nargs, kwnames);

    return acquired != NULL ? acquired : answer_of_stock_lock(op, args, nargs, kwnames);
}

PLUS_DOES(lock_reinit, plus_lock_reinit(inside(self)))
PLUS_RETURNS(lock_statistics, plus_statistics_of(&inside(self)->queue))

static PyObject *
lock_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<%s %s object at %p>",
                                plus_lock_is_locked(inside(op)) ? "locked" : "unlocked",
                                Py_TYPE(op)->tp_name, op);
}

/* The signature of the running version's own locks. */
#if PY_VERSION_HEX >= 0x030F0000
#define EXIT_SIGNATURE "__exit__($self, exc_type, exc_value, exc_tb, /)\n--\n\n"
#else
#define EXIT_SIGNATURE "__exit__($self, /, *exc_info)\n--\n\n"
#endif
#define ACQUIRE_SIGNATURE "($self, /, blocking=True, timeout=-1)\n--\n\n"
#define ACQUIRE_TIMEOUT_DOC                                                                        \
    "timeout: seconds to wait at most; -1: without limit.  A signal handler that\n"                \
    "raises ends the wait.  Raises ValueError for another negative time-out, for one\n"            \
    "that is not a number, or for one with blocking=False; OverflowError for one\n"                \
    "above threading.TIMEOUT_MAX."

PyDoc_STRVAR(lock_doc,
             "lock()\n--\n\n"
             "A mutual exclusion lock that any thread may release: threading.Lock.\n\n"
             "A waiter polls for some microseconds before it sleeps, where that pays, and\n"
             "one that has waited for a millisecond is served before all others.");

PyDoc_STRVAR(lock_acquire_doc,
             "acquire" ACQUIRE_SIGNATURE
             "Acquire the lock and return whether that succeeded.\n\n" ACQUIRE_TIMEOUT_DOC);
PyDoc_STRVAR(lock_acquire_old_doc, "acquire_lock" ACQUIRE_SIGNATURE "An old name of acquire().");

PyDoc_STRVAR(enter_doc, "__enter__($self, /)\n--\n\nAcquire the lock.");
PyDoc_STRVAR(exit_doc, EXIT_SIGNATURE "Release the lock.");

static PyMethodDef lock_methods[] = {
    {"acquire", PLUS_KEYWORDS(lock_acquire_or_answer), lock_acquire_doc},
    PLUS_METHOD("release", lock_release, METH_NOARGS, "$self, /",
                "Release the lock, from whichever thread.\n\n"
                "Raises RuntimeError when it is not held."),
    PLUS_METHOD("locked", lock_locked, METH_NOARGS, "$self, /", "Return whether the lock is held."),
    {"acquire_lock", PLUS_KEYWORDS(lock_acquire_or_answer), lock_acquire_old_doc},
    PLUS_METHOD("release_lock", lock_release, METH_NOARGS, "$self, /", "An old name of release()."),
    PLUS_METHOD("locked_lock", lock_locked, METH_NOARGS, "$self, /", "An old name of locked()."),
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", lock_statistics, METH_NOARGS, plus_statistics_doc},
    {"__enter__", lock_enter, METH_NOARGS, enter_doc},
    {"__exit__", PLUS_FAST(lock_exit), exit_doc},
    {"_at_fork_reinit", lock_reinit, METH_NOARGS, plus_reinit_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(plus_lock_object, weakrefs), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lock_slots[] = {
    {Py_tp_new, lock_new},
    {Py_tp_dealloc, lock_dealloc},
    {Py_tp_repr, lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_members, members},
    {Py_tp_doc, (void *)lock_doc},
    {0, NULL},
};

#if PY_VERSION_HEX < 0x030D0000
/* The type of threading.Lock() in these versions.  It has methods of its own, because the interpreter's short cuts need
 * objects of exactly the type that a method belongs to. */
static PyType_Slot made_lock_slots[] = {
    {Py_tp_dealloc, lock_dealloc},
    {Py_tp_repr, lock_repr},
    {Py_tp_methods, lock_methods},
    {Py_tp_doc, (void *)(lock_doc + sizeof("lock()\n--\n\n") - 1)},
    {0, NULL},
};
#endif

/* ------------------------------------------------------------------------------------------------
 * RLock
 */

static inline plus_rlock_object *
rlock(PyObject *op)
{
    return (plus_rlock_object *)op;
}

int
plus_rlock_acquire_slowly(plus_rlock_object *self, uint64_t deadline_ns)
{
    if (plus_rlock_is_owned(self)) {
        unsigned long count = plus_rlock_count(self);

        if (count == ULONG_MAX) {
            PyErr_SetString(PyExc_OverflowError, "internal lock count overflowed");
            return -1;
        }
        plus_rlock_set_count(self, count + 1);
        return 1;
    }
    if (!plus_lock_try(&self->lock, plus_identity())) {
        int acquired = deadline_ns == 0 ? 0 : plus_acquire(&self->lock, deadline_ns);
        if (acquired <= 0) {
            return acquired;
        }
    }
    plus_rlock_begin(self, 1, plus_identity_ident());
    return 1;
}

int
plus_rlock_release_slowly(plus_rlock_object *self)
{
    if (!plus_rlock_is_owned(self)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return -1;
    }
    unsigned long left = plus_rlock_count(self) - 1;
    plus_rlock_set_count(self, left);
    if (left == 0) {
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
        plus_maker_note(&self->maker);
    }
    return (PyObject *)self;
}

/* RLock's arguments were always ignored, then deprecated, then removed. */
int
plus_rlock_refuse_arguments(bool given)
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

int
plus_rlock_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return plus_rlock_refuse_arguments(PyTuple_GET_SIZE(args) != 0 ||
                                       (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0));
}

static PyObject *
rlock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (plus_rlock_refuse_arguments(PyVectorcall_NARGS(nargsf) != 0 || kwnames != NULL) < 0) {
        return NULL;
    }
    return rlock_new((PyTypeObject *)type, NULL, NULL);
}

static inline int
rlock_take(PyObject *op, uint64_t deadline_ns)
{
    return plus_rlock_acquire(rlock(op), deadline_ns);
}

static inline int
rlock_give(PyObject *op)
{
    return plus_rlock_release(rlock(op));
}

#define PLUS_LOCK(name) rlock_##name
#include "lock_methods.h"

PLUS_RETURNS(rlock_is_owned, PyBool_FromLong(plus_rlock_is_owned(rlock(self))))
PLUS_RETURNS(rlock_recursion_count, PyLong_FromUnsignedLong(plus_rlock_is_owned(rlock(self))
                                                                ? plus_rlock_count(rlock(self))
                                                                : 0))

static PyObject *
rlock_release_save(PyObject *op, PyObject *ignored)
{
    plus_rlock_object *self = rlock(op);
    PyObject *saved = NULL;
    unsigned long count;

    do { /* a collection may run code that changes the lock meanwhile */
        Py_XDECREF(saved);
        if (!plus_rlock_is_owned(self)) {
            return PyErr_Format(PyExc_RuntimeError, "cannot release un-acquired lock");
        }
        count = plus_rlock_count(self);
        saved = Py_BuildValue("kk", count, plus_rlock_owner(self));
    } while (saved != NULL && (!plus_rlock_is_owned(self) || plus_rlock_count(self) != count));
    if (saved != NULL) {
        plus_rlock_set_count(self, 0);
        plus_lock_release(&self->lock);
    }
    return saved;
}

static PyObject *
rlock_acquire_restore(PyObject *op, PyObject *saved)
{
    unsigned long count, owner;

    if (!PyTuple_Check(saved)) {
        return PyErr_Format(PyExc_TypeError,
                            "_acquire_restore() needs what _release_save() returned");
    }
    if (!PyArg_ParseTuple(saved, "kk:_acquire_restore", &count, &owner)) {
        return NULL;
    }
    if (count == 0) {
        Py_RETURN_NONE; /* the state of a lock that was free, for example from a pickle */
    }
    int failed = plus_acquire_surely(&rlock(op)->lock);
    plus_rlock_begin(rlock(op), count, plus_identity_ident());
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
rlock_reinit(PyObject *op, PyObject *ignored)
{
    plus_lock_reinit(&rlock(op)->lock);
    plus_rlock_set_count(rlock(op), 0);
    Py_RETURN_NONE;
}

static PyObject *
rlock_repr(PyObject *op)
{
    plus_rlock_object *self = rlock(op);
    bool locked = plus_lock_is_locked(&self->lock);

    return PyUnicode_FromFormat("<%s %s object owner=%ld count=%lu at %p>",
                                locked ? "locked" : "unlocked", Py_TYPE(op)->tp_name,
                                locked ? (long)plus_rlock_owner(self) : 0L,
                                locked ? plus_rlock_count(self) : 0UL, op);
}

/* CPython's own RLock has no signature, and CPython's tests require that. */
PyDoc_STRVAR(rlock_doc,
             "A re-entrant lock, released by the thread that acquired it: threading.RLock.\n\n"
             "It waits as Lock does.");

PyDoc_STRVAR(rlock_acquire_doc, "acquire" ACQUIRE_SIGNATURE
                                "Acquire the lock, once more if this thread has it; return whether "
                                "that succeeded.\n\n" ACQUIRE_TIMEOUT_DOC);

static PyMethodDef rlock_methods[] = {
    {"acquire", PLUS_KEYWORDS(rlock_acquire), rlock_acquire_doc},
    PLUS_METHOD("release", rlock_release, METH_NOARGS, "$self, /",
                "Undo one acquisition; the last one frees the lock.\n\n"
                "Raises RuntimeError when this thread does not have it."),
    PLUS_METHOD("locked", lock_locked, METH_NOARGS, "$self, /",
                "Return whether any thread has the lock."),
    {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},
    {"statistics", lock_statistics, METH_NOARGS, plus_statistics_doc},
    {"__enter__", rlock_enter, METH_NOARGS, enter_doc},
    {"__exit__", PLUS_FAST(rlock_exit), exit_doc},
    PLUS_METHOD("_is_owned", rlock_is_owned, METH_NOARGS, "$self, /",
                "Return whether this thread has the lock."),
    PLUS_METHOD("_recursion_count", rlock_recursion_count, METH_NOARGS, "$self, /",
                "Return how often this thread has acquired the lock."),
    PLUS_METHOD("_release_save", rlock_release_save, METH_NOARGS, "$self, /",
                "Free the lock, however often acquired; return what that was."),
    PLUS_METHOD("_acquire_restore", rlock_acquire_restore, METH_O, "$self, state, /",
                "Acquire the lock as often as it was before _release_save()."),
    {"_at_fork_reinit", rlock_reinit, METH_NOARGS, plus_reinit_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot rlock_slots[] = {
    {Py_tp_new, rlock_new},         {Py_tp_init, plus_rlock_init},
    {Py_tp_dealloc, lock_dealloc},  {Py_tp_repr, rlock_repr},
    {Py_tp_methods, rlock_methods}, {Py_tp_members, members},
    {Py_tp_doc, (void *)rlock_doc}, {0, NULL},
};

/* _thread.allocate_lock; before 3.13 that is threading.Lock. */
static PyObject *
allocate_lock(PyObject *module, PyObject *ignored)
{
    struct plus_threads_state *state = PyModule_GetState(module);

    return plus_lock_new(state);
}

static PyMethodDef functions[] = {
    {"allocate_lock", allocate_lock, METH_NOARGS,
     PyDoc_STR("allocate_lock($module, /)\n--\n\nCreate a new lock object.")},
    {NULL, NULL, 0, NULL},
};

/* From 3.13 on the type of threading.Lock()'s objects is threading.Lock, and can be called.  Before, that type cannot
 * be called; threads.Lock can, on every version, so there the former derives from the latter. */
static int
add_lock_types(PyObject *module, struct plus_threads_state *state)
{
    const size_t size = sizeof(plus_lock_object);

#if PY_VERSION_HEX < 0x030D0000
    if (plus_add_type(module, &state->callable_lock, "Lock", "_thread.lock", size,
                      Py_TPFLAGS_BASETYPE, lock_slots, NULL) < 0 ||
        plus_add_type(module, &state->lock, "LockType", "_thread.lock", size,
                      Py_TPFLAGS_DISALLOW_INSTANTIATION, made_lock_slots,
                      state->callable_lock) < 0) {
        return -1;
    }
    state->callable_lock->tp_flags &= ~Py_TPFLAGS_BASETYPE; /* like CPython's own */
#else
    if (plus_add_type(module, &state->lock, "Lock", "_thread.lock", size, 0, lock_slots, NULL) <
            0 ||
        PyModule_AddObjectRef(module, "LockType", (PyObject *)state->lock) < 0) {
        return -1;
    }
    state->callable_lock = (PyTypeObject *)Py_NewRef(state->lock);
#endif
    state->callable_lock->tp_vectorcall = lock_vectorcall; /* no slot for it before 3.14 */
    return 0;
}

int
plus_lock_exec(PyObject *module, struct plus_threads_state *state)
{
    if (add_lock_types(module, state) < 0 ||
        plus_add_type(module, &state->rlock, "RLock", "_thread.RLock", sizeof(plus_rlock_object),
                      Py_TPFLAGS_BASETYPE, rlock_slots, NULL) < 0 ||
        PyModule_AddFunctions(module, functions) < 0) {
        return -1;
    }
    state->rlock->tp_vectorcall = rlock_vectorcall;
    /* Find the interpreter's own lock, unless another package (gevent) has replaced it. */
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
