/* The protocol of a Queue; all of it with the mutex held, except the sleep in plus_condition_sleep().
 *
 * put, with a place:     If the queue is empty and a thread waits in get() (`takes`), the item is handed to the first
 *                        one (GRANTED), and the place goes to the next putter.  Otherwise the item is stored, and a
 *                        waiter is woken.
 * put, without a place:  It waits in not_full, and offers the item (`item`, not `takes`).
 * get, with an item:     It takes the item out, which makes a place.  The first waiter in put() gets the place: its
 *                        item is stored and its wait ended as GRANTED (fill_place).
 * get, without an item:  It waits in not_empty.
 *
 * A waiter that was GRANTED returns at once, without the mutex: nothing is left to do.
 *
 * The waiter gets a reference of its own to an item that is handed over, before its wait is ended.  No waiter is queued
 * while signal handlers run in its thread (waiting.c), so none is given an item that a handler waits for.
 * An offered item stays the putter's: it is stored first, and the wait ended afterwards, because storing may fail,
 * which must be reported to the putter, not to the getter.  If the putter gave up in between, the last stored item is
 * taken out again.
 *
 * This does not apply if Python code takes part.  A priority queue compares items, and exceptions of that belong to the
 * thread that puts: its putters are woken, and put by themselves.  So are those of a queue with hooks, or with another
 * container, in which the queue cannot know the last item; such a queue does not hand items over either, past its
 * _put() and _get().
 *
 * The kind is determined again after each wait (plus_store_kind): other code may have replaced the container meanwhile.
 *
 * A woken waiter that finds nothing queues at the head again (plus_waitq_enqueue), so waiters are served in order.
 */
#include "queue_ops.h"

#include "../../_base/raise.h"
#include "../arguments.h"

static int
raise_shutdown(void)
{
    return plus_raise_from("cpythonplus.threads", "ShutDown");
}

static inline bool
is_negative(uint64_t deadline_ns)
{
    return deadline_ns == PLUS_DEADLINE_NEGATIVE || deadline_ns == PLUS_DEADLINE_VERY_NEGATIVE;
}

static inline void
leave(plus_queue_object *self)
{
    plus_lock_release(self->lock);
}

/* ------------------------------------------------------------------------------------------------
 * Serving waiters, with the mutex held
 */

/* Ends the wait of the first waiter and returns true.  With `takes` the waiter must take items, and gets this one;
 * without it, the waiter must still offer this item. */
static bool
end_first(struct plus_waitq *queue, PyObject *item, bool takes)
{
    _Atomic uint32_t *sleeper = NULL;

    plus_waitq_lock(queue);
    struct plus_waiter *first = queue->head;
    bool granted = first != NULL && first->takes == takes && (takes || first->item == item);
    if (granted) {
        first->item = takes ? Py_NewRef(item) : item;
        sleeper = plus_waitq_end(queue, first, PLUS_WAITER_GRANTED);
    }
    plus_waitq_unlock(queue);
    plus_waitq_rouse(sleeper);
    return granted;
}

/* Returns the item that the first waiter offers, or NULL. */
static PyObject *
offer_of_first(struct plus_waitq *queue)
{
    plus_waitq_lock(queue);
    const struct plus_waiter *first = queue->head;
    PyObject *item = first != NULL && !first->takes ? Py_XNewRef((PyObject *)first->item) : NULL;
    plus_waitq_unlock(queue);
    return item;
}

static int
store_item(plus_queue_object *self, enum plus_queue_kind kind, Py_ssize_t size, PyObject *item)
{
    struct plus_waitq *getters = &self->not_empty->queue;

    if (plus_waitq_length(getters) > 0 && size == 0 && kind != PLUS_QUEUE_HOOKED &&
        end_first(getters, item, true)) {
        plus_queue_add_unfinished(self, 1);
        plus_condition_notify(self->not_full, 1); /* the place is still free, for another putter */
        return 0;
    }
    if (plus_store_put(self, kind, item) < 0) {
        plus_condition_notify(self->not_full, 1);
        return -1;
    }
    plus_queue_add_unfinished(self, 1);
    plus_waitq_count_surplus(getters);
    plus_condition_notify(self->not_empty, 1);
    return 0;
}

/* Stores the item that the first waiter in put() offers, then ends its wait.  If there is no memory for the item, the
 * waiter raises MemoryError, not the getter.  The waiter may have given up meanwhile. */
static bool
put_for_first(plus_queue_object *self, enum plus_queue_kind kind)
{
    struct plus_waitq *putters = &self->not_full->queue;
    PyObject *item = offer_of_first(putters);
    bool done = false;

    if (item == NULL) {
        return false;
    }
    if (plus_store_put(self, kind, item) < 0) {
        PyErr_Clear(); /* the waiter tries again, and raises the error */
    }
    else if (end_first(putters, item, false)) {
        plus_queue_add_unfinished(self, 1);
        done = true;
    }
    else if (plus_store_take_back(self, kind) < 0) {
        PyErr_WriteUnraisable((PyObject *)self);
    }
    Py_DECREF(item);
    return done;
}

/* Called after an item was taken out: gives its place to the first putter. */
static void
fill_place(plus_queue_object *self, enum plus_queue_kind kind)
{
    if (plus_waitq_length(&self->not_full->queue) == 0) {
        return;
    }
    /* Comparing items for a heap runs Python code, whose exceptions belong to the thread that puts. */
    bool plain = (kind == PLUS_QUEUE_FIFO || kind == PLUS_QUEUE_LIFO) && self->limit > 0 &&
                 !self->is_shutdown && plus_store_size(self, kind) < self->limit;
    if (!plain || !put_for_first(self, kind)) {
        plus_condition_notify(self->not_full, 1);
    }
}

/* ------------------------------------------------------------------------------------------------
 * put
 */

/* Called with the mutex held and no place.  1: there is a place now; 2: another thread has put the item, and the mutex
 * is no longer held; -1 with an exception. */
static int
wait_for_place(plus_queue_object *self, PyObject *item, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    enum plus_wait_result result;
    int full;

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "put");
    waiter.item = item;
    do {
        result = plus_condition_sleep(self->not_full, &waiter, deadline_ns);
        if (result == PLUS_WAIT_GRANTED) {
            return 2;
        }
        if (result == PLUS_WAIT_SIGNAL) {
            return -1;
        }
        if (self->is_shutdown) {
            return raise_shutdown();
        }
        Py_ssize_t size = plus_store_size(self, plus_store_kind(self));
        full = size < 0 ? -1 : plus_store_is_full(self, size);
        if (full > 0 && result == PLUS_WAIT_TIMED_OUT) {
            return plus_raise_from("queue", "Full");
        }
    } while (full > 0);
    return full < 0 ? -1 : 1;
}

/* Returns as wait_for_place(), or 0: the item is stored. */
static int
put_locked(plus_queue_object *self, PyObject *item, uint64_t deadline_ns)
{
    enum plus_queue_kind kind = plus_store_kind(self);
    Py_ssize_t size = 0, limit = self->limit;

    if (self->is_shutdown) {
        return raise_shutdown();
    }
    if (limit != 0 && is_negative(deadline_ns)) {
        return plus_check_deadline(deadline_ns);
    }
    if (limit != 0 || plus_waitq_length(&self->not_empty->queue) > 0) {
        size = plus_store_size(self, kind);
        int full = size < 0 ? -1 : plus_store_is_full(self, size);
        if (full < 0) {
            return -1;
        }
        if (full) {
            if (deadline_ns == 0) {
                return plus_raise_from("queue", "Full");
            }
            int rc = wait_for_place(self, item, deadline_ns);
            if (rc != 1) {
                return rc;
            }
            kind = plus_store_kind(self);
            size = plus_store_size(self, kind);
            if (size < 0) {
                return -1;
            }
        }
    }
    return store_item(self, kind, size, item);
}

int
plus_queue_put(plus_queue_object *self, PyObject *item, uint64_t deadline_ns)
{
    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    int rc = put_locked(self, item, deadline_ns);
    if (rc == 2) {
        return 0;
    }
    leave(self);
    return rc;
}

/* ------------------------------------------------------------------------------------------------
 * get
 */

/* Called with the mutex held and the queue empty.  1: there is an item now; 2: *item was handed over, and the mutex is
 * no longer held; -1 with an exception. */
static int
wait_for_item(plus_queue_object *self, PyObject **item, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    enum plus_wait_result result;
    Py_ssize_t size;

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "get");
    waiter.takes = self->kind != PLUS_QUEUE_HOOKED;
    do {
        result = plus_condition_sleep(self->not_empty, &waiter, deadline_ns);
        if (result == PLUS_WAIT_GRANTED) {
            *item = waiter.item;
            return 2;
        }
        if (result == PLUS_WAIT_SIGNAL) {
            return -1;
        }
        size = plus_store_size(self, plus_store_kind(self));
        if (size == 0 && self->is_shutdown) {
            return raise_shutdown();
        }
        if (size == 0 && result == PLUS_WAIT_TIMED_OUT) {
            return plus_raise_from("queue", "Empty");
        }
    } while (size == 0);
    return size < 0 ? -1 : 1;
}

/* Returns as wait_for_item(), but 1 with *item taken from the container. */
static int
get_locked(plus_queue_object *self, PyObject **item, uint64_t deadline_ns)
{
    enum plus_queue_kind kind = plus_store_kind(self);
    Py_ssize_t size = plus_store_size(self, kind);

    if (size < 0) {
        return -1;
    }
    if (size == 0 && self->is_shutdown) {
        return raise_shutdown();
    }
    if (is_negative(deadline_ns)) {
        return plus_check_deadline(deadline_ns);
    }
    if (size == 0) {
        if (deadline_ns == 0) {
            return plus_raise_from("queue", "Empty");
        }
        int rc = wait_for_item(self, item, deadline_ns);
        if (rc != 1) {
            return rc;
        }
        kind = plus_store_kind(self);
    }
    *item = plus_store_get(self, kind);
    if (*item == NULL) {
        return -1;
    }
    fill_place(self, kind);
    return 1;
}

PyObject *
plus_queue_get(plus_queue_object *self, uint64_t deadline_ns)
{
    PyObject *item = NULL;

    if (plus_lock_enter(self->lock) < 0) {
        return NULL;
    }
    if (get_locked(self, &item, deadline_ns) != 2) {
        leave(self);
    }
    return item;
}

/* Takes the present items, up to `limit`, but none that waiting putters add meanwhile.  Returns -1 with an exception;
 * the list has the items taken before. */
static int
take_all(plus_queue_object *self, PyObject *items, Py_ssize_t limit)
{
    Py_ssize_t size = plus_store_size(self, plus_store_kind(self));

    for (Py_ssize_t i = 0; i < size && i < limit; i++) {
        /* Move an item into the list.  The list gets a place for it first, so that no item is lost for lack of
         * memory. */
        Py_ssize_t place = PyList_GET_SIZE(items);

        if (PyList_Append(items, Py_None) < 0) {
            return -1;
        }
        PyObject *item = plus_store_get(self, plus_store_kind(self));
        if (item == NULL) {
            plus_list_drop_last(items);
            return -1;
        }
        if (PyList_SetItem(items, place, item) < 0) {
            return -1;
        }
    }
    return size < 0 ? -1 : 0;
}

static int
drain_locked(plus_queue_object *self, PyObject *items, Py_ssize_t limit)
{
    int rc = take_all(self, items, limit);

    struct plus_raised raised = plus_raised_take();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        fill_place(self, plus_store_kind(self));
    }
    plus_raised_put(raised);
    return rc;
}

/* If a hook raises after items were taken, they are returned, and the exception is only reported; it comes again with
 * the next call, if the cause lasts. */
int
plus_queue_drain(plus_queue_object *self, PyObject *items, Py_ssize_t limit)
{
    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    int rc = drain_locked(self, items, limit);
    leave(self);
    if (rc < 0 && PyList_GET_SIZE(items) > 0) {
        PyErr_WriteUnraisable((PyObject *)self);
        rc = 0;
    }
    return rc;
}

/* ------------------------------------------------------------------------------------------------
 * Tasks and shutdown
 */

int
plus_queue_task_done(plus_queue_object *self)
{
    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    bool too_often = self->unfinished <= 0;
    if (!too_often && plus_queue_add_unfinished(self, -1) == 0) {
        plus_condition_notify(self->all_tasks_done, UINT32_MAX);
    }
    leave(self);
    if (too_often) {
        PyErr_SetString(PyExc_ValueError, "task_done() called too many times");
        return -1;
    }
    return 0;
}

/* Returns 1: all done; 0: time is up; -1 with an exception. */
static int
join_locked(plus_queue_object *self, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    enum plus_wait_result result;

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, self, "join");
    while (self->unfinished != 0) {
        result = plus_condition_sleep(self->all_tasks_done, &waiter, deadline_ns);
        if (result == PLUS_WAIT_SIGNAL) {
            return -1;
        }
        if (result == PLUS_WAIT_TIMED_OUT) {
            return self->unfinished == 0;
        }
    }
    return 1;
}

int
plus_queue_join(plus_queue_object *self, uint64_t deadline_ns)
{
    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    int done = join_locked(self, deadline_ns);
    leave(self);
    return done;
}

/* Takes everything out; returns -1 with an exception. */
static int
discard_locked(plus_queue_object *self)
{
    for (;;) {
        enum plus_queue_kind kind = plus_store_kind(self);
        Py_ssize_t size = plus_store_size(self, kind);

        if (size <= 0) {
            return size < 0 ? -1 : 0;
        }
        PyObject *item = plus_store_get(self, kind);
        if (item == NULL) {
            return -1;
        }
        Py_DECREF(item);
        plus_queue_add_unfinished(self, self->unfinished > 0 ? -1 : 0);
    }
}

int
plus_queue_shutdown(plus_queue_object *self, bool immediate)
{
    int rc = 0;

    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    self->is_shutdown = true;
    if (immediate) {
        rc = discard_locked(self);
        plus_condition_notify(self->all_tasks_done, UINT32_MAX);
    }
    plus_condition_notify(self->not_empty, UINT32_MAX);
    plus_condition_notify(self->not_full, UINT32_MAX);
    leave(self);
    return rc;
}

Py_ssize_t
plus_queue_size(plus_queue_object *self)
{
    if (plus_lock_enter(self->lock) < 0) {
        return -1;
    }
    Py_ssize_t size = plus_store_size(self, plus_store_kind(self));
    leave(self);
    return size;
}
