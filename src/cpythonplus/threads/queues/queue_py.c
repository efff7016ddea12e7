/* Queue, LifoQueue, PriorityQueue: the classes of the module queue.  Everything is C, unless a subclass
 * overrides _init, _qsize, _put or _get. */
#include "queue_ops.h"

#include "../../_base/methods.h"
#include "../../_base/process/futex.h"
#include "../arguments.h"
#include "../statistics_py.h"

static inline plus_queue_object *
queue_of(PyObject *op)
{
    return (plus_queue_object *)op;
}

/* ------------------------------------------------------------------------------------------------
 * put
 */

static PyObject *
queue_put(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    uint64_t deadline_ns = PLUS_FUTEX_NO_DEADLINE;
    PyObject *given[3];

    if (nargs == 1 && kwnames == NULL) {
        given[0] = args[0];
    }
    else if (plus_arguments(&plus_put_signature, args, nargs, kwnames, given) < 0 ||
             plus_queue_deadline(given[1], given[2], &deadline_ns) < 0) {
        return plus_standard_answer(op, "put", args, nargs, kwnames);
    }
    return plus_none(plus_queue_put(queue_of(op), given[0], deadline_ns));
}

static PyObject *
queue_put_nowait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *item;
    PyObject *standard = plus_standard_if_touched(op, queue_of(op)->dict, "put_nowait");

    if (standard != NULL) {
        return plus_standard_call(standard, op, args, nargs, kwnames);
    }
    if (plus_arguments(&plus_put_nowait_signature, args, nargs, kwnames, &item) < 0) {
        return plus_standard_answer(op, "put_nowait", args, nargs, kwnames);
    }
    return plus_none(plus_queue_put(queue_of(op), item, 0));
}

/* ------------------------------------------------------------------------------------------------
 * get
 */

static PyObject *
queue_get(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    uint64_t deadline_ns = PLUS_FUTEX_NO_DEADLINE;
    PyObject *given[2];

    if ((nargs != 0 || kwnames != NULL) &&
        (plus_arguments(&plus_get_signature, args, nargs, kwnames, given) < 0 ||
         plus_queue_deadline(given[0], given[1], &deadline_ns) < 0)) {
        return plus_standard_answer(op, "get", args, nargs, kwnames);
    }
    return plus_queue_get(queue_of(op), deadline_ns);
}

static PyObject *
queue_get_nowait(PyObject *op, PyObject *ignored)
{
    PyObject *standard = plus_standard_if_touched(op, queue_of(op)->dict, "get_nowait");

    return standard != NULL ? plus_standard_call(standard, op, NULL, 0, NULL)
                            : plus_queue_get(queue_of(op), 0);
}

static PyObject *
queue_drain(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_ssize_t limit;

    if (plus_drain_arguments(args, nargs, kwnames, &limit) < 0) {
        return NULL;
    }
    PyObject *items = PyList_New(0);
    if (items != NULL && plus_queue_drain(queue_of(op), items, limit) < 0) {
        Py_CLEAR(items);
    }
    return items;
}

/* ------------------------------------------------------------------------------------------------
 * Tasks
 */

PLUS_RETURNS(queue_task_done, plus_none(plus_queue_task_done(queue_of(self))))

static const struct plus_signature join_signature = PLUS_SIGNATURE("join", 0, "timeout");

static PyObject *
queue_join(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *timeout;
    uint64_t deadline_ns;

    if (plus_arguments(&join_signature, args, nargs, kwnames, &timeout) < 0 ||
        plus_queue_deadline(NULL, timeout, &deadline_ns) < 0) {
        return NULL;
    }
    return plus_truth(plus_queue_join(queue_of(op), deadline_ns));
}

static const struct plus_signature shutdown_signature = PLUS_SIGNATURE("shutdown", 0, "immediate");

static PyObject *
queue_shutdown(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *given;

    if (plus_arguments(&shutdown_signature, args, nargs, kwnames, &given) < 0) {
        return plus_standard_answer(op, "shutdown", args, nargs, kwnames);
    }
    int immediate = given != NULL ? PyObject_IsTrue(given) : 0;
    return plus_none(immediate < 0 ? -1 : plus_queue_shutdown(queue_of(op), immediate != 0));
}

/* ------------------------------------------------------------------------------------------------
 * Sizes
 */

static PyObject *
queue_qsize(PyObject *op, PyObject *ignored)
{
    Py_ssize_t size = plus_queue_size(queue_of(op));

    return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

static PyObject *
queue_empty(PyObject *op, PyObject *ignored)
{
    Py_ssize_t size = plus_queue_size(queue_of(op));

    return size < 0 ? NULL : PyBool_FromLong(size == 0);
}

static PyObject *
queue_full(PyObject *op, PyObject *ignored)
{
    Py_ssize_t size = plus_queue_size(queue_of(op));

    return plus_truth(size < 0 ? -1 : plus_store_is_full(queue_of(op), size));
}

static PyObject *
queue_statistics(PyObject *op, PyObject *ignored)
{
    plus_queue_object *self = queue_of(op);
    struct plus_waitq *parts[] = {&self->not_empty->queue, &self->not_full->queue,
                                  &self->all_tasks_done->queue, &self->lock->queue};
    struct plus_wait_counts sum = {0};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct plus_wait_counts counts = plus_waitq_counts(parts[i]);
        plus_counts_add(&sum, &counts);
    }
    return plus_statistics(&sum);
}

/* ------------------------------------------------------------------------------------------------
 * Making and freeing
 */

static int
make_parts(plus_queue_object *self, struct plus_threads_state *state)
{
    self->state = state;
    self->mutex = plus_lock_new(state);
    if (self->mutex == NULL) {
        return -1;
    }
    self->lock = &((plus_lock_object *)self->mutex)->lock;
    self->not_empty = plus_condition_new(state, self->mutex);
    self->not_full = plus_condition_new(state, self->mutex);
    self->all_tasks_done = plus_condition_new(state, self->mutex);
    if (self->not_empty == NULL || self->not_full == NULL || self->all_tasks_done == NULL) {
        return -1;
    }
    self->maxsize = PyLong_FromLong(0);
    self->base = plus_store_kind_of(Py_TYPE(self), state);
    self->kind = self->base;
    return self->maxsize != NULL ? 0 : -1;
}

static PyObject *
queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct plus_threads_state *state = plus_threads_state(type);
    plus_queue_object *self = state != NULL ? (plus_queue_object *)type->tp_alloc(type, 0) : NULL;

    if (self == NULL) {
        return NULL;
    }
    PyObject_GC_UnTrack(self); /* hidden until it has all its parts */
    if (make_parts(self, state) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int
set_maxsize(PyObject *op, PyObject *value, void *closure)
{
    plus_queue_object *self = queue_of(op);
    Py_ssize_t limit = -1;

    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "maxsize cannot be deleted");
        return -1;
    }
    if (PyLong_Check(value)) {
        limit = PyNumber_AsSsize_t(value, NULL); /* clipped on overflow */
        limit = limit < 0 ? 0 : limit;
    }
    self->limit = limit;
    plus_field_set(op, &self->maxsize, Py_NewRef(value));
    return 0;
}

PLUS_GETS(get_maxsize, plus_field_get(self, &queue_of(self)->maxsize))

#ifdef Py_GIL_DISABLED
static PyObject *
get_container(PyObject *op, void *closure)
{
    PyObject *container = plus_field_get(op, &queue_of(op)->queue);

    if (container == NULL) {
        PyErr_SetString(PyExc_AttributeError, "queue");
    }
    return container;
}

static int
set_container(PyObject *op, PyObject *value, void *closure)
{
    return plus_store_set(queue_of(op), Py_XNewRef(value));
}
#endif

static const struct plus_signature init_signature = PLUS_SIGNATURE("Queue", 0, "maxsize");

static int
queue_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    plus_queue_object *self = queue_of(op);
    PyObject *maxsize;

    if (plus_init_arguments(&init_signature, args, kwargs, &maxsize) < 0 ||
        (maxsize != NULL && set_maxsize(op, maxsize, NULL) < 0)) {
        return -1;
    }
    self->unfinished = 0;
    self->is_shutdown = false;
    return plus_store_init(self);
}

/* A program may give one queue a _put of its own. */
static int
queue_setattro(PyObject *op, PyObject *name, PyObject *value)
{
    if (plus_store_is_hook(name)) {
        queue_of(op)->kind = PLUS_QUEUE_HOOKED;
    }
    return PyObject_GenericSetAttr(op, name, value);
}

static int
queue_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(queue_of(op)->queue);
    Py_VISIT(queue_of(op)->maxsize);
    Py_VISIT(queue_of(op)->dict);
    Py_VISIT(queue_of(op)->not_empty);
    Py_VISIT(queue_of(op)->not_full);
    Py_VISIT(queue_of(op)->all_tasks_done);
    return 0;
}

/* The mutex and the conditions are kept until the end: they form no cycle by themselves, and methods rely on them.  (A
 * program may store a cycle in a condition's __dict__; the condition's own clear breaks it.) */
static int
queue_clear(PyObject *op)
{
    Py_CLEAR(queue_of(op)->queue);
    Py_CLEAR(queue_of(op)->dict);
    return 0;
}

static void
queue_dealloc(PyObject *op)
{
    plus_queue_object *self = queue_of(op);
    PyObject *parts[] = {self->mutex, (PyObject *)self->not_empty, (PyObject *)self->not_full,
                         (PyObject *)self->all_tasks_done, self->maxsize};

    /* Queues nested in queues are freed one after the other, not recursively. */
    PyObject_GC_UnTrack(op);
    Py_TRASHCAN_BEGIN(op, queue_dealloc);
    plus_dealloc(op);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        Py_XDECREF(parts[i]);
    }
    Py_TRASHCAN_END;
}

PyDoc_STRVAR(queue_doc, "Queue(maxsize=0)\n--\n\n"
                        "A first-in-first-out queue between threads: queue.Queue.\n\n"
                        "maxsize: how many items it holds at most; 0 or less: any number.");
PyDoc_STRVAR(lifo_doc, "LifoQueue(maxsize=0)\n--\n\nA Queue that gives the newest item first.");
PyDoc_STRVAR(priority_doc, "PriorityQueue(maxsize=0)\n--\n\n"
                           "A Queue that gives the smallest item first.");

static PyMethodDef queue_methods[] = {
    PLUS_METHOD_KW(
        "put", queue_put, METH_FASTCALL | METH_KEYWORDS, "$self, /, item, block=True, timeout=None",
        "Put an item into the queue; wait for a place if it is full.\n\n"
        "timeout: seconds to wait at most; None: without limit.  Raises Full when there was\n"
        "no place, at once with block=False; ShutDown after shutdown(); ValueError for a\n"
        "time-out that is negative or not a number."),
    PLUS_METHOD_KW(
        "get", queue_get, METH_FASTCALL | METH_KEYWORDS, "$self, /, block=True, timeout=None",
        "Take an item out of the queue and return it; wait for one if it is empty.\n\n"
        "timeout: seconds to wait at most; None: without limit.  Raises Empty when there\n"
        "was none, at once with block=False; ShutDown after shutdown(), when it is empty;\n"
        "ValueError for a time-out that is negative or not a number."),
    PLUS_METHOD_KW("put_nowait", queue_put_nowait, METH_FASTCALL | METH_KEYWORDS, "$self, /, item",
                   "put(item, block=False)."),
    PLUS_METHOD("get_nowait", queue_get_nowait, METH_NOARGS, "$self, /", "get(block=False)."),
    PLUS_METHOD_KW(
        "drain", queue_drain, METH_FASTCALL | METH_KEYWORDS, "$self, /, max_items=None",
        "Take all items that are there now, or max_items of them; return them as a list.\n\n"
        "Does not wait, and does not call task_done().  Raises ValueError for a negative\n"
        "number."),
    PLUS_METHOD("task_done", queue_task_done, METH_NOARGS, "$self, /",
                "Say that an item that was taken has been worked on.\n\n"
                "Raises ValueError when called more often than items were put."),
    PLUS_METHOD_KW(
        "join", queue_join, METH_FASTCALL | METH_KEYWORDS, "$self, /, timeout=None",
        "Wait until task_done() was called for all items; return whether it was in time.\n\n"
        "timeout: seconds; None: without limit."),
    PLUS_METHOD_KW("shutdown", queue_shutdown, METH_FASTCALL | METH_KEYWORDS,
                   "$self, /, immediate=False",
                   "From now on put() raises ShutDown, and get() once the queue is empty.\n\n"
                   "immediate: also drop the items that are there, as if each had been done."),
    PLUS_METHOD("qsize", queue_qsize, METH_NOARGS, "$self, /",
                "Return how many items are in the queue now."),
    PLUS_METHOD("empty", queue_empty, METH_NOARGS, "$self, /",
                "Return whether the queue is empty now."),
    PLUS_METHOD("full", queue_full, METH_NOARGS, "$self, /",
                "Return whether the queue is full now."),
    {"statistics", queue_statistics, METH_NOARGS, plus_statistics_doc},
    PLUS_STANDARD_METHODS,
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef queue_members[] = {
    PLUS_STANDARD_MEMBERS(plus_queue_object),
    {"mutex", Py_T_OBJECT_EX, offsetof(plus_queue_object, mutex), Py_READONLY, NULL},
    {"not_empty", Py_T_OBJECT_EX, offsetof(plus_queue_object, not_empty), Py_READONLY, NULL},
    {"not_full", Py_T_OBJECT_EX, offsetof(plus_queue_object, not_full), Py_READONLY, NULL},
    {"all_tasks_done", Py_T_OBJECT_EX, offsetof(plus_queue_object, all_tasks_done), Py_READONLY,
     NULL},
#ifndef Py_GIL_DISABLED
    /* Not a getset: memory.growth() names what a queue keeps by its members. */
    {"queue", Py_T_OBJECT_EX, offsetof(plus_queue_object, queue), 0, NULL},
#endif
    {"unfinished_tasks", Py_T_PYSSIZET, offsetof(plus_queue_object, unfinished), 0, NULL},
    {"is_shutdown", Py_T_BOOL, offsetof(plus_queue_object, is_shutdown), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef queue_getset[] = {
    {"maxsize", get_maxsize, set_maxsize, NULL, NULL},
#ifdef Py_GIL_DISABLED
    {"queue", get_container, set_container, NULL, NULL},
#endif
    PLUS_STANDARD_GETSET,
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot queue_slots[] = {
    {Py_tp_new, queue_new},
    {Py_tp_init, queue_init},
    {Py_tp_dealloc, queue_dealloc},
    {Py_tp_traverse, queue_traverse},
    {Py_tp_clear, queue_clear},
    {Py_tp_methods, queue_methods},
    {Py_tp_members, queue_members},
    {Py_tp_getset, queue_getset},
    {Py_tp_setattro, queue_setattro},
    {Py_tp_doc, (void *)queue_doc},
    {0, NULL},
};

static PyType_Slot lifo_slots[] = {
    {Py_tp_doc, (void *)lifo_doc},
    {0, NULL},
};

static PyType_Slot priority_slots[] = {
    {Py_tp_doc, (void *)priority_doc},
    {0, NULL},
};

int
plus_queue_exec(PyObject *module, struct plus_threads_state *state)
{
    const size_t size = sizeof(plus_queue_object);

    if (plus_add_type(module, &state->queue, "Queue", "queue.Queue", size,
                      Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, queue_slots, NULL) < 0 ||
        plus_add_type(module, &state->lifo_queue, "LifoQueue", "queue.LifoQueue", size, 0,
                      lifo_slots, state->queue) < 0 ||
        plus_add_type(module, &state->priority_queue, "PriorityQueue", "queue.PriorityQueue", size,
                      0, priority_slots, state->queue) < 0) {
        return -1;
    }
    state->queue->tp_flags &= ~Py_TPFLAGS_BASETYPE; /* no subclasses: standard.h */
    return plus_store_exec(state);
}
