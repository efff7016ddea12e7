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
    Py_ssize_t limit;  /* maxsize as a number; 0: none; -1: compare with `maxsize` */
    Py_ssize_t unfinished;
    struct plus_threads_state *state;
    enum plus_queue_kind kind, base; /* base: the type's kind, without hooks */
    bool is_shutdown;
    PyObject *dict, *weakrefs;
} plus_queue_object;

/* The kind of a type, without regard to hooks. */
enum plus_queue_kind
plus_store_kind_of(const PyTypeObject *type, const struct plus_threads_state *state);

/* Whether `name` is that of one of the four methods that a queue calls itself. */
bool
plus_store_is_hook(PyObject *name);

/* Puts a new empty container into self->queue. */
int
plus_store_init(plus_queue_object *self);

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
    return plus_store_is_own(self, self->kind) ? self->kind : PLUS_QUEUE_HOOKED;
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
