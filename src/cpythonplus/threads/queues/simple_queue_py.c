/* SimpleQueue: queue.SimpleQueue.  It is unbounded; put() never waits and may be called from anywhere, also from a
 * finaliser or a signal handler that interrupts another put().
 *
 * The items are references in a ring, under the guard of the wait queue.  put() hands its item to the first thread that
 * waits, so items lie in the ring only while no thread waits.  A getter that finds none queues itself, after one more
 * check under the guard.  It is not queued while signal handlers run in its thread (waiting.c).
 *
 * No Python code runs under the guard: references are only moved.  tp_clear drops the items after it has detached the
 * ring from the object, because a finaliser may put.
 *
 * With a GIL, the guard is not taken while no thread waits: threads begin to wait with the GIL held, and only a waiting
 * thread changes anything without it.  That saves two locked instructions for each item, a fifth of the time.
 */
#include "../maker.h"
#include "../state.h"

#include "../../_base/methods.h"
#include "../../_base/process/futex.h"
#include "../../_base/raise.h"
#include "../arguments.h"
#include "../statistics_py.h"
#include "../waiting/waiting.h"

#define RING_MIN 8

typedef struct {
    PyObject_HEAD struct plus_waitq waiters;
    PyObject **ring; /* `capacity` places, a power of two; NULL: none yet.  Under the guard. */
    size_t capacity, first, count;
    PyObject *weakrefs;
    struct plus_maker maker;
} simple_queue_object;

static inline simple_queue_object *
simple_queue(PyObject *op)
{
    return (simple_queue_object *)op;
}

/* Takes the guard if needed; returns whether it is held. */
static inline bool
guard_if_needed(simple_queue_object *self)
{
#ifndef Py_GIL_DISABLED
    if (plus_waitq_length(&self->waiters) == 0) {
        return false;
    }
#endif
    plus_waitq_lock(&self->waiters);
    return true;
}

static inline void
unguard(simple_queue_object *self, bool guarded)
{
    if (guarded) {
        plus_waitq_unlock(&self->waiters);
    }
}

/* ------------------------------------------------------------------------------------------------
 * The ring; with the guard held, if needed.  PyMem_Malloc runs no Python code.
 */

static bool
resize(simple_queue_object *self, size_t capacity)
{
    PyObject **ring = PyMem_Malloc(capacity * sizeof(*ring));

    if (ring == NULL) {
        return false;
    }
    size_t head =
        self->capacity - self->first < self->count ? self->capacity - self->first : self->count;
    if (self->count > 0) {
        memcpy(ring, self->ring + self->first, head * sizeof(*ring));
        memcpy(ring + head, self->ring, (self->count - head) * sizeof(*ring));
    }
    PyMem_Free(self->ring);
    self->ring = ring;
    self->capacity = capacity;
    self->first = 0;
    return true;
}

static bool
push(simple_queue_object *self, PyObject *item)
{
    if (self->count == self->capacity &&
        !resize(self, self->capacity > 0 ? self->capacity * 2 : RING_MIN)) {
        return false;
    }
    self->ring[(self->first + self->count) & (self->capacity - 1)] = item;
    self->count++;
    return true;
}

/* Halves a ring that is three quarters empty, so that the memory of a burst is given back. */
static PyObject *
pop(simple_queue_object *self)
{
    PyObject *item = self->ring[self->first];

    self->first = (self->first + 1) & (self->capacity - 1);
    self->count--;
    if (self->capacity > RING_MIN && self->count < self->capacity / 4) {
        (void)resize(self, self->capacity / 2); /* without memory the ring stays as it is */
    }
    return item;
}

/* ------------------------------------------------------------------------------------------------
 * put
 */

/* Hands the item to the longest waiter, or stores it.  Takes the reference. */
static int
put(simple_queue_object *self, PyObject *item)
{
    _Atomic uint32_t *sleeper = NULL;
    bool stored = true;

    bool guarded = guard_if_needed(self);
    struct plus_waiter *first = guarded ? self->waiters.head : NULL;
    if (first != NULL) {
        first->item = item;
        sleeper = plus_waitq_end(&self->waiters, first, PLUS_WAITER_GRANTED);
    }
    else {
        plus_waitq_count_surplus(&self->waiters);
        stored = push(self, item);
    }
    unguard(self, guarded);
    if (!stored) {
        Py_DECREF(item);
        PyErr_NoMemory();
        return -1;
    }
    plus_waitq_rouse(sleeper);
    return 0;
}

static PyObject *
simple_queue_put(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *given[3];

    if (nargs == 1 && kwnames == NULL) {
        given[0] = args[0];
    }
    else if (plus_arguments(&plus_put_signature, args, nargs, kwnames, given) < 0) {
        return NULL;
    }
    return plus_none(put(simple_queue(op), Py_NewRef(given[0])));
}

static PyObject *
simple_queue_put_nowait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *item;

    return plus_arguments(&plus_put_nowait_signature, args, nargs, kwnames, &item) < 0
               ? NULL
               : plus_none(put(simple_queue(op), Py_NewRef(item)));
}

/* ------------------------------------------------------------------------------------------------
 * get
 */

/* Returns NULL without an exception if the ring is empty. */
static PyObject *
take(simple_queue_object *self)
{
    bool guarded = guard_if_needed(self);
    PyObject *item = self->count > 0 ? pop(self) : NULL;

    unguard(self, guarded);
    return item;
}

static PyObject *
wait_for_item(simple_queue_object *self, uint64_t deadline_ns)
{
    struct plus_waiter waiter;

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "get");
    for (;;) {
        plus_waitq_lock(&self->waiters);
        if (self->count > 0) { /* from a signal handler, or from another thread without a GIL */
            PyObject *item = pop(self);

            plus_waitq_unlock(&self->waiters);
            return item;
        }
        plus_waitq_enqueue(&self->waiters, &waiter);
        plus_waitq_unlock(&self->waiters);
        switch (plus_wait(&self->waiters, &waiter, deadline_ns)) {
        case PLUS_WAIT_SIGNAL:
            return NULL;
        case PLUS_WAIT_GRANTED:
            return waiter.item;
        case PLUS_WAIT_TIMED_OUT:
            plus_raise_from("queue", "Empty");
            return NULL;
        case PLUS_WAIT_WOKEN:
            break;
        }
    }
}

static inline PyObject *
get(simple_queue_object *self, uint64_t deadline_ns)
{
    PyObject *item = take(self);

    if (item == NULL && deadline_ns == 0) {
        plus_raise_from("queue", "Empty");
        return NULL;
    }
    return item != NULL ? item : wait_for_item(self, deadline_ns);
}

static PyObject *
simple_queue_get(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    uint64_t deadline_ns = PLUS_FUTEX_NO_DEADLINE;
    PyObject *given[2];

    if (nargs != 0 || kwnames != NULL) {
        if (plus_arguments(&plus_get_signature, args, nargs, kwnames, given) < 0 ||
            plus_queue_deadline(given[0], given[1], &deadline_ns) < 0) {
            return NULL;
        }
        /* As in queue.SimpleQueue, checked even if the call need not wait. */
        if (plus_check_deadline(deadline_ns == PLUS_DEADLINE_VERY_NEGATIVE ? PLUS_DEADLINE_TOO_LARGE
                                                                           : deadline_ns) < 0) {
            return NULL;
        }
    }
    return get(simple_queue(op), deadline_ns);
}

PLUS_RETURNS(simple_queue_get_nowait, get(simple_queue(self), 0))

/* Moves an item into the list: 1; 0: there is none; -1 with an exception.  The list gets a place for it first, so that
 * no item is lost for lack of memory. */
static int
take_into(simple_queue_object *self, PyObject *items)
{
    Py_ssize_t place = PyList_GET_SIZE(items);

    if (PyList_Append(items, Py_None) < 0) {
        return -1;
    }
    PyObject *item = take(self);
    if (item == NULL) {
        plus_list_drop_last(items);
        return 0;
    }
    return PyList_SetItem(items, place, item) < 0 ? -1 : 1;
}

static PyObject *
simple_queue_drain(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    simple_queue_object *self = simple_queue(op);
    Py_ssize_t limit;

    if (plus_drain_arguments(args, nargs, kwnames, &limit) < 0) {
        return NULL;
    }
    PyObject *items = PyList_New(0);
    while (items != NULL && limit-- > 0) {
        int rc = take_into(self, items);
        if (rc < 0 && PyList_GET_SIZE(items) == 0) {
            Py_CLEAR(items);
        }
        else if (rc < 0) {
            PyErr_WriteUnraisable(op); /* the items taken so far are returned */
        }
        if (rc <= 0) {
            break;
        }
    }
    return items;
}

/* ------------------------------------------------------------------------------------------------
 * Sizes
 */

static size_t
count_items(simple_queue_object *self)
{
    bool guarded = guard_if_needed(self);
    size_t count = self->count;

    unguard(self, guarded);
    return count;
}

PLUS_RETURNS(simple_queue_qsize, PyLong_FromSize_t(count_items(simple_queue(self))))
PLUS_RETURNS(simple_queue_empty, PyBool_FromLong(count_items(simple_queue(self)) == 0))

static PyObject *
simple_queue_sizeof(PyObject *op, PyObject *ignored)
{
    size_t size = (size_t)Py_TYPE(op)->tp_basicsize;

    return PyLong_FromSize_t(size + simple_queue(op)->capacity * sizeof(PyObject *));
}

PLUS_RETURNS(simple_queue_statistics, plus_statistics_of(&simple_queue(self)->waiters))

/* ------------------------------------------------------------------------------------------------
 * Making and freeing
 */

static PyObject *
simple_queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    simple_queue_object *self = (simple_queue_object *)type->tp_alloc(type, 0);

    if (self != NULL) {
        plus_waitq_init(&self->waiters);
        plus_maker_note(&self->maker);
    }
    return (PyObject *)self;
}

static int
simple_queue_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return plus_no_arguments("SimpleQueue", args, kwargs);
}

static int
simple_queue_traverse(PyObject *op, visitproc visit, void *arg)
{
    simple_queue_object *self = simple_queue(op);

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->maker.code);
    for (size_t i = 0; i < self->count; i++) {
        Py_VISIT(self->ring[(self->first + i) & (self->capacity - 1)]);
    }
    return 0;
}

/* The ring is detached first: a finaliser may put something into the queue. */
static int
simple_queue_clear(PyObject *op)
{
    simple_queue_object *self = simple_queue(op);
    PyObject **ring = self->ring;
    size_t capacity = self->capacity, first = self->first, count = self->count;

    self->ring = NULL;
    self->capacity = self->first = self->count = 0;
    for (size_t i = 0; i < count; i++) {
        Py_DECREF(ring[(first + i) & (capacity - 1)]);
    }
    PyMem_Free(ring);
    Py_CLEAR(self->maker.code);
    return 0;
}

const struct plus_maker *
plus_simple_queue_maker(PyObject *op)
{
    return &simple_queue(op)->maker;
}

static void
simple_queue_dealloc(PyObject *op)
{
    plus_dealloc_by(op, simple_queue_clear);
}

PyDoc_STRVAR(simple_queue_doc, "SimpleQueue()\n--\n\n"
                               "An unbounded first-in-first-out queue: queue.SimpleQueue.\n\n"
                               "put() may be called from finalisers and signal handlers.");

static PyMethodDef simple_queue_methods[] = {
    PLUS_METHOD_KW("put", simple_queue_put, METH_FASTCALL | METH_KEYWORDS,
                   "$self, /, item, block=True, timeout=None",
                   "Put an item into the queue.  Never waits; block and timeout are ignored."),
    PLUS_METHOD_KW(
        "get", simple_queue_get, METH_FASTCALL | METH_KEYWORDS,
        "$self, /, block=True, timeout=None",
        "Take an item out of the queue and return it; wait for one if it is empty.\n\n"
        "timeout: seconds to wait at most; None: without limit.  Raises Empty when there\n"
        "was none, at once with block=False; ValueError for a time-out that is negative or\n"
        "not a number."),
    PLUS_METHOD_KW("put_nowait", simple_queue_put_nowait, METH_FASTCALL | METH_KEYWORDS,
                   "$self, /, item", "The same as put(item)."),
    PLUS_METHOD("get_nowait", simple_queue_get_nowait, METH_NOARGS, "$self, /",
                "get(block=False)."),
    PLUS_METHOD_KW(
        "drain", simple_queue_drain, METH_FASTCALL | METH_KEYWORDS, "$self, /, max_items=None",
        "Take all items that are there now, or max_items of them; return them as a list.\n\n"
        "Does not wait.  Raises ValueError for a negative number."),
    PLUS_METHOD("qsize", simple_queue_qsize, METH_NOARGS, "$self, /",
                "Return how many items are in the queue now."),
    PLUS_METHOD("empty", simple_queue_empty, METH_NOARGS, "$self, /",
                "Return whether the queue is empty now."),
    {"statistics", simple_queue_statistics, METH_NOARGS, plus_statistics_doc},
    {"__sizeof__", simple_queue_sizeof, METH_NOARGS, NULL},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef simple_queue_members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(simple_queue_object, weakrefs), Py_READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot simple_queue_slots[] = {
    {Py_tp_new, simple_queue_new},
    {Py_tp_init, simple_queue_init},
    {Py_tp_dealloc, simple_queue_dealloc},
    {Py_tp_traverse, simple_queue_traverse},
    {Py_tp_clear, simple_queue_clear},
    {Py_tp_methods, simple_queue_methods},
    {Py_tp_members, simple_queue_members},
    {Py_tp_doc, (void *)simple_queue_doc},
    {0, NULL},
};

int
plus_simple_queue_exec(PyObject *module, struct plus_threads_state *state)
{
    return plus_add_type(module, &state->simple_queue, "SimpleQueue", "_queue.SimpleQueue",
                         sizeof(simple_queue_object), Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                         simple_queue_slots, NULL);
}
