/* The operations of a Queue, with sorted arguments: each takes the mutex and releases it.
 *
 * As in the module queue, one mutex guards everything, with three conditions over it; users may use all four, and
 * `queue`, the container.  Two things differ.  put() hands its item to the first thread that waits in get(), and get()
 * moves the item of the first thread that waits in put() into the place that it makes.  So waiters are served in order,
 * and no thread wakes for nothing.
 *
 * Called with the GIL held, which is given up while a call waits.  A deadline comes from plus_queue_deadline(); 0:
 * without waiting.
 */
#pragma once

#include "queue_store.h"

/* Returns 0, or -1 with Full, ShutDown, ValueError, OverflowError or a hook's exception. */
int
plus_queue_put(plus_queue_object *self, PyObject *item, uint64_t deadline_ns);

/* Returns a new reference; NULL with Empty or as above. */
PyObject *
plus_queue_get(plus_queue_object *self, uint64_t deadline_ns);

/* Appends the present items, at most `limit`, to a list.  Returns 0, or -1 with the exception of a hook that was raised
 * before any item was taken. */
int
plus_queue_drain(plus_queue_object *self, PyObject *items, Py_ssize_t limit);

/* Returns 0, or -1 with ValueError. */
int
plus_queue_task_done(plus_queue_object *self);

/* Returns 1: all done; 0: time is up; -1 with an exception. */
int
plus_queue_join(plus_queue_object *self, uint64_t deadline_ns);

/* Returns 0, or -1 with a hook's exception; the queue is shut down all the same. */
int
plus_queue_shutdown(plus_queue_object *self, bool immediate);

/* Returns -1 with an exception. */
Py_ssize_t
plus_queue_size(plus_queue_object *self);
