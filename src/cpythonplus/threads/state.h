/* The room's part of the extension module's state, and helpers that its types share.
 *
 * Called with the GIL held (attached, on a free-threaded build).
 */
#pragma once

#include "../_base/compat.h"
#include "standard/standard.h"

#include <stdatomic.h>

/* The number of types that stand for a class that is written in Python. */
#define PLUS_STANDARDS 8

/* The objects that the types of one interpreter use.  Fixed once the module is initialised, except `standards`. */
struct plus_threads_state {
    PyTypeObject *lock, *callable_lock; /* of threading.Lock(); threads.Lock (lock_py.c) */
    PyTypeObject *rlock, *condition, *semaphore, *bounded_semaphore, *event, *barrier;
    PyTypeObject *queue, *lifo_queue, *priority_queue, *simple_queue;
    PyObject *deque, *deque_append, *deque_popleft; /* the type and its functions */
    PyObject *heappush, *heappop;
    PyObject *stock_lock; /* raises errors about arguments; NULL if another package replaced it */
    struct plus_standard standards[PLUS_STANDARDS];
};

extern struct PyModuleDef
    plus_native_module; /* the whole extension; its state begins with plus_threads_state */

/* Function and flags for an entry of a method table. */
#define PLUS_KEYWORDS(f) ((PyCFunction)(void (*)(void))(f)), METH_FASTCALL | METH_KEYWORDS
#define PLUS_FAST(f) ((PyCFunction)(void (*)(void))(f)), METH_FASTCALL

/* Drops the result of a call: returns 0, or -1 if it is NULL. */
static inline int
plus_done(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* The return values of methods without a result, and of those with a truth value; NULL for a negative number, which
 * comes with an exception. */
static inline PyObject *
plus_none(int rc)
{
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

static inline PyObject *
plus_truth(int rc)
{
    return rc < 0 ? NULL
                  : Py_NewRef(rc != 0 ? Py_True : Py_False); /* saves PyBool_FromLong's call */
}

/* A new reference to what a field of `op` refers to; NULL: to nothing.  Without a GIL another thread may set the field
 * meanwhile, by plus_field_set() or as a member of the type. */
static inline PyObject *
plus_field_get(PyObject *op, PyObject *const *field)
{
    PyObject *value;

    PLUS_BEGIN_LOCKED(op);
    value = Py_XNewRef(*field);
    PLUS_END_LOCKED();
    return value;
}

/* Atomic for the interpreter, which reads members without the lock. */
static inline void
plus_field_store(PyObject **field, PyObject *value)
{
    atomic_store_explicit((_Atomic(PyObject *) *)field, value, memory_order_release);
}

/* Takes the reference to `value`. */
static inline void
plus_field_set(PyObject *op, PyObject **field, PyObject *value)
{
    PyObject *old;

    PLUS_BEGIN_LOCKED(op);
    old = *field;
    plus_field_store(field, value);
    PLUS_END_LOCKED();
    Py_XDECREF(old);
}

int
plus_threads_traverse(PyObject *module, visitproc visit, void *arg);
int
plus_threads_clear(PyObject *module);

/* The state of the module that made `type` or one of its bases; NULL with an exception. */
struct plus_threads_state *
plus_threads_state(PyTypeObject *type);

/* Each function adds a part of the room: types, which it stores in *state, or functions.  Returns 0, or -1 with an
 * exception. */
typedef int
plus_types_exec(PyObject *module, struct plus_threads_state *state);
plus_types_exec plus_waiting_exec, plus_present_waits_exec, plus_lock_exec, plus_condition_exec,
    plus_semaphore_exec, plus_event_exec, plus_barrier_exec, plus_queue_exec,
    plus_simple_queue_exec, plus_standard_exec;

/* The docstring of `_at_fork_reinit`, which all types with a lock have. */
#define plus_reinit_doc                                                                            \
    PyDoc_STR("_at_fork_reinit($self, /)\n--\n\nMake it as new, in a forked child.")

/* Makes a type in *made and adds it to the module by the name `as`; `base` may be NULL.  Returns 0, or -1 with an
 * exception. */
int
plus_add_type(PyObject *module, PyTypeObject **made, const char *as, const char *name, size_t size,
              unsigned long flags, PyType_Slot *slots, PyTypeObject *base);

/* Returns "<module.Type at 0x...: state>"; the state is formatted by PyUnicode_FromFormat. */
PyObject *
plus_repr_with(PyObject *op, const char *format, Py_ssize_t first, Py_ssize_t second);

/* The tp_dealloc of types with weak references and a tp_clear that have no Python subclasses. */
void
plus_dealloc(PyObject *op);

/* Like plus_dealloc(), for types that may have Python subclasses: `clear` is the type's own tp_clear. */
void
plus_dealloc_by(PyObject *op, inquiry clear);

/* Removes the last item of a list of ours; PyList_SetSlice() might need memory. */
static inline void
plus_list_drop_last(PyObject *list)
{
    Py_ssize_t last = PyList_GET_SIZE(list) - 1;
    PyObject *item = PyList_GET_ITEM(list, last);

    Py_SET_SIZE((PyVarObject *)list, last);
    Py_DECREF(item);
}
