/* The container of a Queue's items, by kind.  Called with the queue's mutex held. */
#pragma once

#include "../locks/condition_py.h"

enum plus_queue_kind {
    PLUS_QUEUE_FIFO,     /* a collections.deque */
    PLUS_QUEUE_LIFO,     /* a list */
    PLUS_QUEUE_PRIORITY, /* a list that is a heap; comparing items runs Python code */
    PLUS_QUEUE_HOOKED, /* a program set a container or an _init, _qsize, _put or _get of its own */
};

typedef struct {
    PyObject_HEAD struct plus_lock *lock; /* the lock inside of `mutex` */
    PyObject *mutex;
    plus_condition_object *not_empty, *not_full, *all_tasks_done;
    PyObject *queue;   /* NULL until __init__ */
    PyObject *maxsize; /* as given */
    /* Atomic, as attributes and __init__ use it without the mutex. */
    _Atomic Py_ssize_t limit; /* maxsize as a number; 0: none; -1: compare with `maxsize` */
    _Atomic Py_ssize_t unfinished;
    struct plus_threads_state *state;
    _Atomic enum plus_queue_kind kind;
    enum plus_queue_kind base; /* the type's kind, without hooks */
    _Atomic bool is_shutdown;
    PyObject *dict, *weakrefs;
} plus_queue_object;

/* The kind of a type, without regard to hooks. */
enum plus_queue_kind
plus_store_kind_of(const PyTypeObject *type, const struct plus_threads_state *state);

/* Whether `name` is that of one of the four methods that a queue calls itself. */
bool
plus_store_is_hook(PyObject *name);

/* Puts a container into self->queue, a new empty one, or `made`, whose reference it takes.  Called with the mutex held
 * or without.  Without a GIL other threads use the present container, which they keep by the mutex: so it is taken.
 * Returns 0, or -1 with an exception. */
int
plus_store_init(plus_queue_object *self);
int
plus_store_set(plus_queue_object *self, PyObject *made);

/* Adds to the number of unfinished tasks, and returns it.  The mutex is held, so no locked instruction is needed. */
static inline Py_ssize_t
plus_queue_add_unfinished(plus_queue_object *self, Py_ssize_t more)
{
    Py_ssize_t sum = atomic_load_explicit(&self->unfinished, memory_order_relaxed) + more;

    atomic_store_explicit(&self->unfinished, sum, memory_order_relaxed);
    return sum;
}

/* Whether the container is the one that this room made. */
static inline bool
plus_store_is_own(const plus_queue_object *self, enum plus_queue_kind kind)
{
    PyTypeObject *expected =
        kind == PLUS_QUEUE_FIFO ? (PyTypeObject *)self->state->deque : &PyList_Type;

    return self->queue != NULL && Py_IS_TYPE(self->queue, expected);
}

/* The present kind: a replaced container makes a queue HOOKED. */
static inline enum plus_queue_kind
plus_store_kind(const plus_queue_object *self)
{
    enum plus_queue_kind kind = atomic_load_explicit(&self->kind, memory_order_relaxed);

    return plus_store_is_own(self, kind) ? kind : PLUS_QUEUE_HOOKED;
}

/* Returns -1 with an exception. */
Py_ssize_t
plus_store_size(plus_queue_object *self, enum plus_queue_kind kind);
int
plus_store_put(plus_queue_object *self, enum plus_queue_kind kind, PyObject *item);
/* Returns a new reference; NULL with an exception. */
PyObject *
plus_store_get(plus_queue_object *self, enum plus_queue_kind kind);
/* Takes out the item that was put last, from a deque or list. */
int
plus_store_take_back(plus_queue_object *self, enum plus_queue_kind kind);

/* Whether a queue with `size` items is full: 1 or 0, -1 with an exception. */
int
plus_store_is_full(plus_queue_object *self, Py_ssize_t size);

/* Stores the types and functions in *state. */
int
plus_store_exec(struct plus_threads_state *state);
