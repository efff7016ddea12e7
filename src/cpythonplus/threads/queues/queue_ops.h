/* What a Queue does, after the arguments are sorted: each takes the mutex and gives it back.
 *
 * As in the module queue, one mutex guards everything, and three conditions over it are waited on; users
 * may reach for all four, and for `queue`, the container.  What differs: put() hands its item to the first
 * thread that waits in get(), and get() moves the item of the first thread that waits in put() into the
 * place that it makes.  So whoever waits is served in order, and nobody wakes for nothing.
 *
 * Called with the GIL held, which is given up while a call waits.  A dead line is one of
 * plus_queue_deadline's; 0: without waiting.
 */
#ifndef PLUS_THREADS_QUEUE_OPS_H
#define PLUS_THREADS_QUEUE_OPS_H

#include "queue_store.h"

/* 0, or -1 with Full, ShutDown, ValueError, OverflowError or what a hook raised. */
int
plus_queue_put(plus_queue_object *self, PyObject *item, uint64_t deadline_ns);

/* A new reference; NULL with Empty or as above. */
PyObject *
plus_queue_get(plus_queue_object *self, uint64_t deadline_ns);

/* Appends what is there, up to `limit` items, to a list.  0, or -1 with what a hook raised before there
 * was any. */
int
plus_queue_drain(plus_queue_object *self, PyObject *items, Py_ssize_t limit);

/* 0, or -1 with ValueError. */
int
plus_queue_task_done(plus_queue_object *self);

/* 1: all done; 0: time is up; -1 with an exception. */
int
plus_queue_join(plus_queue_object *self, uint64_t deadline_ns);

/* 0, or -1 with what a hook raised; it is shut down all the same. */
int
plus_queue_shutdown(plus_queue_object *self, bool immediate);

/* -1 with an exception. */
Py_ssize_t
plus_queue_size(plus_queue_object *self);

#endif
