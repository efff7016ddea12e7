/* The types Lock and RLock: threading.Lock and threading.RLock, for tasklets and threads. */
#include "locks.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../threads/binding.h"
#include "../../threads/locks/lock_py.h"
#include "../channels/channel.h"
#include "../running/tasklet_py.h"

#include <limits.h>

static inline struct plus_task_lock *
self_of(PyObject *op)
{
    return (struct plus_task_lock *)op;
}

/* ---- making and ending ------------------------------------------------------------------------ */

/* Whether this code makes locks for its callers: then the caller's code is noted as the maker of the lock. */
static bool
makes_for_others(PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *name = file != NULL ? strrchr(file, '/') : NULL;

    if (file == NULL) {
        PyErr_Clear();
    }
    return name != NULL && (strcmp(name, "/threading.py") == 0 || strcmp(name, "/queue.py") == 0 ||
                            strstr(file, "cpythonplus/tasklets/locks/") != NULL);
}

static int
note_maker(PyCodeObject *code, int offset, void *arg)
{
    struct plus_channel *queue = arg;

    if (queue->made_by != NULL && makes_for_others(code)) {
        return 0;
    }
    Py_XSETREF(queue->made_by, Py_NewRef(code));
    queue->made_at = offset;
    return !makes_for_others(code);
}

/* Makes a lock.  The garbage collector tracks it from its first waiter on, if not at once. */
static PyObject *
make(PyTypeObject *type)
{
    bool exact = !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
    struct plus_task_lock *lock =
        exact ? PyObject_GC_New(struct plus_task_lock, type)
              : (struct plus_task_lock *)type->tp_alloc(type, 0); /* a class of Python code */

    if (lock == NULL) {
        return NULL;
    }
    if (exact) {
        memset((char *)lock + sizeof(PyObject), 0, sizeof(*lock) - sizeof(PyObject));
    }
    lock->queue.waits = plus_acquiring;
    lock->queue.descriptor = -1;
    struct plus_frames frames = plus_frames_of_thread(PyThreadState_Get());

    (void)plus_frames_each(&frames, note_maker, &lock->queue);
    return (PyObject *)lock;
}

static int
lock_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(self_of(op)->owner);
    return plus_channel_traverse(op, visit, arg);
}

static int
lock_clear(PyObject *op)
{
    Py_CLEAR(self_of(op)->owner);
    return plus_channel_clear(op);
}

static void
lock_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    PyObject_ClearWeakRefs(op);
    (void)lock_clear(op);
    Py_TYPE(op)->tp_free(op);
}

/* ---- common to both --------------------------------------------------------------------------- */

static inline int
lock_take(PyObject *op, uint64_t deadline_ns)
{
    return plus_task_lock_try(self_of(op)) ? 1 : plus_task_lock_wait(self_of(op), deadline_ns);
}

static inline int
lock_give(PyObject *op)
{
    if (!self_of(op)->locked) {
        PyErr_SetString(PyExc_RuntimeError, "release unlocked lock");
        return -1;
    }
    plus_task_lock_release(self_of(op));
    return 0;
}

#define PLUS_LOCK(name) lock_##name
#include "../../threads/locks/lock_methods.h"

PLUS_RETURNS(lock_locked, PyBool_FromLong(plus_task_lock_is_locked(self_of(self))))
PLUS_DOES(lock_reinit, plus_task_lock_reinit(self_of(self)))

static PyObject *
lock_statistics(PyObject *op, PyObject *ignored)
{
    struct plus_task_lock *lock = self_of(op);
    PyObject *type = plus_import_from("cpythonplus.tasklets.locks._statistics", "LockStatistics");

    if (type == NULL) {
        return NULL;
    }
    PyObject *made = PyObject_CallFunction(type, "IIIIi", lock->waits, lock->timeouts,
                                           lock->hand_overs, lock->in_vain, -lock->queue.balance);

    Py_DECREF(type);
    return made;
}

static PyGetSetDef lock_getset[] = {
    {"made_at", plus_channel_made_at, NULL,
     PyDoc_STR("(file name, line, function) of the code that made it, or None."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define COMMON_METHODS                                                                             \
    PLUS_METHOD("locked", lock_locked, METH_NOARGS, "$self, /",                                    \
                "Return whether the lock is held."),                                               \
        {"acquire_timeout", plus_acquire_timeout, METH_O, plus_acquire_timeout_doc},               \
        PLUS_METHOD("statistics", lock_statistics, METH_NOARGS, "$self, /",                        \
                    "Return the LockStatistics of this lock: how often it was waited for, and "    \
                    "how that went."),                                                             \
        {"_at_fork_reinit", lock_reinit, METH_NOARGS, NULL},                                       \
    {                                                                                              \
        "__reduce__", plus_refuse_pickling, METH_NOARGS, NULL                                      \
    }

#define ACQUIRE_PARAMETERS "$self, /, blocking=True, timeout=-1"
#define ACQUIRE_RAISES                                                                             \
    "timeout: seconds to wait at most; -1: without limit.  Only the tasklet waits.  An\n"          \
    "exception that a signal handler raises, or that the tasklet is sent, ends the wait.\n"        \
    "Raises ValueError for another negative time-out, for one that is not a number, or for one\n"  \
    "with blocking=False; OverflowError for one above threading.TIMEOUT_MAX; RuntimeError\n"       \
    "where the tasklet must not block."

/* ---- Lock ------------------------------------------------------------------------------------- */

static PyObject *
lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return plus_no_arguments("Lock", args, kwargs) < 0 ? NULL : make(type);
}

static PyObject *
lock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) != 0 || kwnames != NULL) {
        PyErr_SetString(PyExc_TypeError, "Lock() takes no arguments");
        return NULL;
    }
    return make((PyTypeObject *)type);
}

PyObject *
plus_task_lock_for_imports(PyObject *module, PyObject *type)
{
    PyObject *lock = PyObject_CallNoArgs(type);

    if (lock != NULL) {
        self_of(lock)->imports = true;
    }
    return lock;
}

/* For conditions: the lock is held afterwards, whatever exception is raised. */
PLUS_RETURNS(lock_acquire_restore, plus_none(plus_task_lock_insist(self_of(self))))

static PyObject *
lock_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<%s %s object at %p>",
                                plus_task_lock_is_locked(self_of(op)) ? "locked" : "unlocked",
                                Py_TYPE(op)->tp_name, op);
}

static PyMethodDef lock_methods[] = {
    PLUS_METHOD_KW("acquire", lock_acquire, METH_FASTCALL | METH_KEYWORDS, ACQUIRE_PARAMETERS,
                   "Acquire the lock and return whether that succeeded.\n\n" ACQUIRE_RAISES),
    PLUS_METHOD("release", lock_release, METH_NOARGS, "$self, /",
                "Release the lock, from whichever tasklet and thread.\n\n"
                "Raises RuntimeError when it is not held."),
    {"acquire_lock", PLUS_KEYWORDS(lock_acquire), PyDoc_STR("An old name of acquire().")},
    {"release_lock", lock_release, METH_NOARGS, PyDoc_STR("An old name of release().")},
    {"locked_lock", lock_locked, METH_NOARGS, PyDoc_STR("An old name of locked().")},
    {"__enter__", lock_enter, METH_NOARGS, NULL},
    {"__exit__", PLUS_FAST(lock_exit), NULL},
    {"_is_owned", lock_locked, METH_NOARGS, NULL},
    {"_release_save", lock_release, METH_NOARGS, NULL},
    {"_acquire_restore", lock_acquire_restore, METH_O, NULL},
    COMMON_METHODS,
    {NULL, NULL, 0, NULL},
};

PyTypeObject plus_task_lock_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "_thread.lock",
    .tp_basicsize = sizeof(struct plus_task_lock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = PyDoc_STR("Lock()\n--\n\n"
                        "A mutual exclusion lock for tasklets and threads that any of them may\n"
                        "release: threading.Lock.  Waiters are served in order."),
    .tp_new = lock_new,
    .tp_vectorcall = lock_vectorcall,
    .tp_free = PyObject_GC_Del,
    .tp_dealloc = lock_dealloc,
    .tp_traverse = lock_traverse,
    .tp_clear = lock_clear,
    .tp_repr = lock_repr,
    .tp_methods = lock_methods,
    .tp_getset = lock_getset,
    .tp_weaklistoffset = offsetof(struct plus_task_lock, queue.weakrefs),
};

/* ---- RLock ------------------------------------------------------------------------------------ */

static PyObject *
rlock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *made = make(type);

    /* The owner may be part of a cycle. */
    if (made != NULL && !PyObject_GC_IsTracked(made)) {
        PyObject_GC_Track(made);
    }
    return made;
}

static PyObject *
rlock_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (plus_rlock_refuse_arguments(PyVectorcall_NARGS(nargsf) != 0 || kwnames != NULL) < 0) {
        return NULL;
    }
    return rlock_new((PyTypeObject *)type, NULL, NULL);
}

static bool
is_owned(const struct plus_task_lock *lock)
{
    return lock->owner != NULL && plus_scheduler_own != NULL &&
           lock->owner == plus_scheduler_own->running;
}

static void
begin(struct plus_task_lock *lock, struct plus_tasklet *owner, unsigned long count)
{
    lock->owner = (struct plus_tasklet *)Py_NewRef(owner);
    lock->count = count;
}

/* Returns 1: acquired; 0: timed out; -1 with an exception. */
static int
rlock_take(PyObject *op, uint64_t deadline_ns)
{
    struct plus_task_lock *lock = self_of(op);
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched == NULL) {
        return -1;
    }
    if (lock->owner == sched->running) {
        if (lock->count == ULONG_MAX) {
            PyErr_SetString(PyExc_OverflowError, "internal lock count overflowed");
            return -1;
        }
        lock->count++;
        return 1;
    }
    if (!plus_task_lock_try(lock)) {
        int acquired = plus_task_lock_wait(lock, deadline_ns);

        if (acquired <= 0) {
            return acquired;
        }
    }
    begin(lock, sched->running, 1);
    return 1;
}

static void
rlock_free(struct plus_task_lock *lock)
{
    struct plus_tasklet *owner = lock->owner;

    lock->owner = NULL;
    lock->count = 0;
    plus_task_lock_release(lock);
    Py_DECREF(owner);
}

static bool
refuse_release(const struct plus_task_lock *lock)
{
    if (!is_owned(lock)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return true;
    }
    return false;
}

static int
rlock_give(PyObject *op)
{
    struct plus_task_lock *lock = self_of(op);

    if (refuse_release(lock)) {
        return -1;
    }
    if (lock->count == 1) {
        rlock_free(lock);
    }
    else {
        lock->count--;
    }
    return 0;
}

#define PLUS_LOCK(name) rlock_##name
#include "../../threads/locks/lock_methods.h"

PLUS_RETURNS(rlock_is_owned, PyBool_FromLong(is_owned(self_of(self))))
PLUS_RETURNS(rlock_recursion_count,
             PyLong_FromUnsignedLong(is_owned(self_of(self)) ? self_of(self)->count : 0))

static PyObject *
rlock_release_save(PyObject *op, PyObject *ignored)
{
    struct plus_task_lock *lock = self_of(op);

    PyObject *saved = NULL;
    unsigned long count;

    do { /* a collection may run code that changes the lock meanwhile */
        Py_XDECREF(saved);
        if (refuse_release(lock)) {
            return NULL;
        }
        count = lock->count;
        saved = Py_BuildValue("kO", count, lock->owner);
    } while (saved != NULL && (!is_owned(lock) || lock->count != count));
    if (saved != NULL) {
        rlock_free(lock);
    }
    return saved;
}

static PyObject *
rlock_acquire_restore(PyObject *op, PyObject *saved)
{
    struct plus_task_lock *lock = self_of(op);
    unsigned long count;
    PyObject *owner;

    if (!PyTuple_Check(saved)) {
        PyErr_SetString(PyExc_TypeError, "_acquire_restore() needs what _release_save() returned");
        return NULL;
    }
    if (!PyArg_ParseTuple(saved, "kO!:_acquire_restore", &count, &plus_tasklet_type, &owner)) {
        return NULL;
    }
    int rc = plus_task_lock_insist(lock);

    if (rc > -2) {
        begin(lock, (struct plus_tasklet *)owner, count);
    }
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
rlock_repr(PyObject *op)
{
    const struct plus_task_lock *lock = self_of(op);
    bool locked = plus_task_lock_is_locked(lock);

    return PyUnicode_FromFormat(
        "<%s %s object owner=%p count=%lu at %p>", locked ? "locked" : "unlocked",
        Py_TYPE(op)->tp_name, locked ? (void *)lock->owner : NULL, locked ? lock->count : 0UL, op);
}

static PyMethodDef rlock_methods[] = {
    PLUS_METHOD_KW("acquire", rlock_acquire, METH_FASTCALL | METH_KEYWORDS, ACQUIRE_PARAMETERS,
                   "Acquire the lock, once more if this tasklet has it; return whether that "
                   "succeeded.\n\n" ACQUIRE_RAISES),
    PLUS_METHOD("release", rlock_release, METH_NOARGS, "$self, /",
                "Undo one acquisition; the last one frees the lock.\n\n"
                "Raises RuntimeError when this tasklet does not have it."),
    {"__enter__", rlock_enter, METH_NOARGS, NULL},
    {"__exit__", PLUS_FAST(rlock_exit), NULL},
    {"_is_owned", rlock_is_owned, METH_NOARGS, NULL},
    {"_recursion_count", rlock_recursion_count, METH_NOARGS, NULL},
    {"_release_save", rlock_release_save, METH_NOARGS, NULL},
    {"_acquire_restore", rlock_acquire_restore, METH_O, NULL},
    COMMON_METHODS,
    {NULL, NULL, 0, NULL},
};

PyTypeObject plus_task_rlock_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "_thread.RLock",
    .tp_basicsize = sizeof(struct plus_task_lock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = PyDoc_STR("RLock()\n--\n\n"
                        "A re-entrant lock, released by the tasklet that acquired it:\n"
                        "threading.RLock.  Each thread's main tasklet is one too."),
    .tp_new = rlock_new,
    .tp_init = plus_rlock_init,
    .tp_vectorcall = rlock_vectorcall,
    .tp_alloc = PyType_GenericAlloc,
    .tp_free = PyObject_GC_Del,
    .tp_dealloc = lock_dealloc,
    .tp_traverse = lock_traverse,
    .tp_clear = lock_clear,
    .tp_repr = rlock_repr,
    .tp_methods = rlock_methods,
    .tp_getset = lock_getset,
    .tp_weaklistoffset = offsetof(struct plus_task_lock, queue.weakrefs),
};
