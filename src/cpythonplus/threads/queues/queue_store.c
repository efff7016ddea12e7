/* The containers of a Queue, and the cases that are left to Python.
 *
 * For its own kind a queue knows the container, an exact deque or list, and works on it by C functions that are looked
 * up once.  If a program replaces the container, even by a subclass, or sets a hook on the object, the kind becomes
 * HOOKED: then the queue calls its methods _qsize, _put and _get by name, as the standard class does.  Unless the
 * program has given it such a method, that is the standard class's function (standard.c: complete), which takes any
 * container.
 *
 * These calls may run Python code (comparisons, finalisers, a hook) with the mutex held, as in the standard library.
 * The mutex is no RLock: such code may use another queue, and waits for ever if it uses this one.  It may put another
 * container into self->queue, so the container in use is kept alive.
 */
#include "queue_store.h"

#include "../../_base/raise.h"

static const char *const hook_names[] = {"_init", "_qsize", "_put", "_get"};
#define HOOKS (sizeof(hook_names) / sizeof(hook_names[0]))

/* ------------------------------------------------------------------------------------------------
 * Kinds
 */

enum plus_queue_kind
plus_store_kind_of(const PyTypeObject *type, const struct plus_threads_state *state)
{
    if (type == state->priority_queue) {
        return PLUS_QUEUE_PRIORITY;
    }
    return type == state->lifo_queue ? PLUS_QUEUE_LIFO : PLUS_QUEUE_FIFO;
}

bool
plus_store_is_hook(PyObject *name)
{
    for (size_t i = 0; i < HOOKS; i++) {
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, hook_names[i]) == 0) {
            return true;
        }
    }
    return false;
}

int
plus_store_init(plus_queue_object *self)
{
    PyObject *made =
        self->base == PLUS_QUEUE_FIFO ? PyObject_CallNoArgs(self->state->deque) : PyList_New(0);
    return made != NULL ? plus_store_set(self, made) : -1;
}

int
plus_store_set(plus_queue_object *self, PyObject *made)
{
#ifdef Py_GIL_DISABLED
    bool takes = !plus_lock_is_own(self->lock);
    if (takes && plus_lock_enter(self->lock) < 0) {
        Py_XDECREF(made);
        return -1;
    }
#endif
    PyObject *old;
    PLUS_BEGIN_LOCKED(self);
    old = self->queue;
    plus_field_store(&self->queue, made);
    PLUS_END_LOCKED();
#ifdef Py_GIL_DISABLED
    if (takes) {
        plus_lock_release(self->lock);
    }
#endif
    Py_XDECREF(old);
    return 0;
}

/* ------------------------------------------------------------------------------------------------
 * Containers
 */

/* Calls a function with the container, kept alive: comparisons and finalisers may replace it. */
static PyObject *
call_with_container(PyObject *function, PyObject *container, PyObject *item)
{
    PyObject *arguments[] = {Py_NewRef(container), item};
    PyObject *result = PyObject_Vectorcall(function, arguments, item != NULL ? 2 : 1, NULL);

    Py_DECREF(container);
    return result;
}

/* PyObject_CallMethod with the format "O" would spread a tuple. */
static PyObject *
call_method(PyObject *op, const char *name, PyObject *item)
{
    PyObject *method = PyObject_GetAttrString(op, name);
    PyObject *result = method != NULL ? PyObject_CallOneArg(method, item) : NULL;

    Py_XDECREF(method);
    return result;
}

static PyObject *
pop_last(PyObject *list)
{
    Py_ssize_t last = PyList_GET_SIZE(list) - 1;

    if (last < 0) {
        return PyErr_Format(PyExc_IndexError, "pop from empty list");
    }
    PyObject *item = Py_NewRef(PyList_GET_ITEM(list, last));
    if (PyList_SetSlice(list, last, last + 1, NULL) < 0) {
        Py_CLEAR(item);
    }
    return item;
}

Py_ssize_t
plus_store_size(plus_queue_object *self, enum plus_queue_kind kind)
{
    if (kind != PLUS_QUEUE_HOOKED) {
        return Py_TYPE(self->queue)->tp_as_sequence->sq_length(self->queue);
    }
    PyObject *size = PyObject_CallMethod((PyObject *)self, "_qsize", NULL);
    Py_ssize_t number = size != NULL ? PyNumber_AsSsize_t(size, PyExc_OverflowError) : -1;
    Py_XDECREF(size);
    if (number < 0 && !PyErr_Occurred()) {
        number = 1; /* any true value means that the queue is not empty */
    }
    return number;
}

int
plus_store_put(plus_queue_object *self, enum plus_queue_kind kind, PyObject *item)
{
    switch (kind) {
    case PLUS_QUEUE_FIFO:
        return plus_done(call_with_container(self->state->deque_append, self->queue, item));
    case PLUS_QUEUE_LIFO:
        return PyList_Append(self->queue, item);
    case PLUS_QUEUE_PRIORITY:
        return plus_done(call_with_container(self->state->heappush, self->queue, item));
    default:
        return plus_done(call_method((PyObject *)self, "_put", item));
    }
}

PyObject *
plus_store_get(plus_queue_object *self, enum plus_queue_kind kind)
{
    switch (kind) {
    case PLUS_QUEUE_FIFO:
        return call_with_container(self->state->deque_popleft, self->queue, NULL);
    case PLUS_QUEUE_LIFO:
        return pop_last(self->queue);
    case PLUS_QUEUE_PRIORITY:
        return call_with_container(self->state->heappop, self->queue, NULL);
    default:
        return PyObject_CallMethod((PyObject *)self, "_get", NULL);
    }
}

int
plus_store_take_back(plus_queue_object *self, enum plus_queue_kind kind)
{
    return plus_done(kind == PLUS_QUEUE_FIFO ? PyObject_CallMethod(self->queue, "pop", NULL)
                                             : pop_last(self->queue));
}

int
plus_store_is_full(plus_queue_object *self, Py_ssize_t size)
{
    Py_ssize_t limit = self->limit;
    if (limit >= 0) {
        return limit > 0 && size >= limit;
    }
    PyObject *maxsize = plus_field_get((PyObject *)self, &self->maxsize);
    PyObject *zero = PyLong_FromLong(0);
    PyObject *number = zero != NULL ? PyLong_FromSsize_t(size) : NULL;
    int full = -1;

    if (number != NULL) {
        full = PyObject_RichCompareBool(maxsize, zero, Py_GT);
        if (full > 0) {
            full = PyObject_RichCompareBool(number, maxsize, Py_GE);
        }
    }
    Py_DECREF(maxsize);
    Py_XDECREF(zero);
    Py_XDECREF(number);
    return full;
}

/* ------------------------------------------------------------------------------------------------
 * Types and functions of the modules _collections and _heapq
 */

int
plus_store_exec(struct plus_threads_state *state)
{
    state->deque = plus_import_from("_collections", "deque");
    if (state->deque == NULL) {
        return -1;
    }
    state->deque_append = PyObject_GetAttrString(state->deque, "append");
    state->deque_popleft = PyObject_GetAttrString(state->deque, "popleft");
    state->heappush = plus_import_from("_heapq", "heappush");
    state->heappop = plus_import_from("_heapq", "heappop");
    return state->deque_append != NULL && state->deque_popleft != NULL && state->heappush != NULL &&
                   state->heappop != NULL
               ? 0
               : -1;
}
