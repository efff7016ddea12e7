/* An event that happens once, in any thread, and that a tasklet waits for: in_thread()'s result.
 *
 * It is not a channel, because the thread that delivers has no tasklets: it must not wait if the receiver has been
 * killed, and gets no scheduler of its own.  All functions are called with the GIL held.
 */
#include "parking.h"

#include "../../_base/methods.h"
#include "loop.h"

#include <unistd.h>

struct delivery {
    PyObject ob_base;
    struct plus_channel *queue;
    bool delivered;
};

static PyObject *
delivery_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!PyArg_ParseTuple(args, ":io_delivery")) {
        return NULL;
    }
    struct delivery *self = (struct delivery *)type->tp_alloc(type, 0);

    if (self != NULL && (self->queue = plus_waiters_make("waiting for a thread")) == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
delivery_dealloc(PyObject *op)
{
    Py_XDECREF(((struct delivery *)op)->queue);
    Py_TYPE(op)->tp_free(op);
}

static bool
is_delivered(void *self)
{
    return ((struct delivery *)self)->delivered;
}

static PyObject *
delivery_wait(PyObject *op, PyObject *args)
{
    struct delivery *self = (struct delivery *)op;
    struct plus_scheduler *sched = plus_scheduler_get();
    enum plus_parked parked = PLUS_PARKED_WOKEN;
    PyObject *timeout = Py_None;
    uint64_t deadline_ns;
    pid_t pid = getpid();

    if (sched == NULL || !PyArg_ParseTuple(args, "|O:wait", &timeout) ||
        !plus_deadline_from(timeout, &deadline_ns)) {
        return NULL;
    }
    if (sched->in_handler) {
        int delivered = plus_wait_beside(is_delivered, self, deadline_ns);

        return delivered >= 0 ? PyBool_FromLong(delivered) : NULL;
    }
    plus_loop_ask(sched, 1); /* run() must not return meanwhile */
    while (!self->delivered && parked == PLUS_PARKED_WOKEN) {
        parked = plus_park(sched, self->queue, deadline_ns, false, NULL);
    }
    if (pid == getpid()) { /* the child of a fork counts from 0 */
        plus_loop_ask(sched, -1);
    }
    return parked != PLUS_PARKED_RAISED ? PyBool_FromLong(self->delivered) : NULL;
}

static PyObject *
delivery_deliver(PyObject *op, PyObject *ignored)
{
    struct delivery *self = (struct delivery *)op;

    self->delivered = true;
    while (self->queue->head != NULL) {
        plus_unpark(self->queue->head);
    }
    Py_RETURN_NONE;
}

#define METHOD(name, ...) PLUS_METHOD(#name, delivery_##name, __VA_ARGS__)

static PyMethodDef delivery_methods[] = {
    METHOD(wait, METH_VARARGS, "$self, timeout=None, /",
           "Block the tasklet until deliver() has been called; return whether it was."),
    METHOD(deliver, METH_NOARGS, "$self, /", "End the waits, from any thread."),
    {NULL, NULL, 0, NULL},
};

PyTypeObject plus_delivery_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus._native.io_delivery",
    .tp_doc = PyDoc_STR("io_delivery()\n--\n\nAn event that happens once, and what waits for it."),
    .tp_basicsize = sizeof(struct delivery),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = delivery_new,
    .tp_dealloc = delivery_dealloc,
    .tp_methods = delivery_methods,
};
