/* The type `channel`. */
#include "channel.h"

#include "../../_base/methods.h"
#include "../../threads/binding.h"
#include "../core/bomb.h"
#include "../core/pickle_calls.h"

static struct plus_channel *
self_of(PyObject *op)
{
    return (struct plus_channel *)op;
}

static PyObject *
channel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct plus_channel *channel = (struct plus_channel *)type->tp_alloc(type, 0);

    if (channel == NULL) {
        return NULL;
    }
    channel->preference = -1; /* the receiver goes first */
    channel->descriptor = -1;
    PyFrameObject *frame = PyEval_GetFrame(); /* clears the exception if it has no memory */

    if (frame != NULL) {
        channel->made_by = (PyObject *)PyFrame_GetCode(frame);
        channel->made_at = PyFrame_GetLasti(frame);
    }
    return (PyObject *)channel;
}

static int
channel_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return Py_IS_TYPE(op, &plus_channel_type) ? plus_no_arguments("channel", args, kwargs) : 0;
}

int
plus_channel_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct plus_channel *channel = self_of(op);

    Py_VISIT(channel->made_by);
    for (struct plus_tasklet *task = channel->head; task != NULL; task = task->next) {
        Py_VISIT(task);
    }
    return 0;
}

int
plus_channel_clear(PyObject *op)
{
    plus_channel_empty(self_of(op));
    Py_CLEAR(self_of(op)->made_by);
    return 0;
}

void
plus_channel_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    PyObject_ClearWeakRefs(op);
    (void)plus_channel_clear(op);
    Py_TYPE(op)->tp_free(op);
}

/* A callback of a weak reference runs while an object is being freed, perhaps by the garbage collector. */
static bool
is_dead_reference(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    bool is_reference = PyWeakref_CheckRefExact(value) || PyWeakref_CheckProxy(value) ||
                        (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && PyWeakref_CheckRef(value));

    return is_reference && ((PyWeakReference *)value)->wr_object == Py_None;
}

static PyObject *
channel_send(PyObject *op, PyObject *value)
{
    if (is_dead_reference(value)) {
        struct plus_scheduler *sched = plus_scheduler_get();

        if (sched == NULL) {
            return NULL;
        }
        struct plus_tasklet *task = sched->running;
        bool uncalled = task->uncalled;

        task->uncalled = true;
        PyObject *result = plus_channel_action(self_of(op), Py_NewRef(value), 1);

        task->uncalled = uncalled;
        return result;
    }
    return plus_channel_action(self_of(op), Py_NewRef(value), 1);
}

PLUS_RETURNS(channel_receive, plus_channel_action(self_of(self), Py_NewRef(Py_None), -1))

PLUS_RETURNS(send_bomb, arg != NULL ? plus_channel_action(self_of(self), arg, 1) : NULL)

PLUS_RETURNS(channel_send_exception,
             send_bomb(self, plus_bomb_from_class(arg, "channel.send_exception")))

static PyObject *
channel_send_throw(PyObject *op, PyObject *args)
{
    PyObject *exc, *value = Py_None, *traceback = Py_None;

    if (!PyArg_UnpackTuple(args, "send_throw", 1, 3, &exc, &value, &traceback)) {
        return NULL;
    }
    return send_bomb(op, plus_bomb_from_triple(exc, value, traceback));
}

static PyObject *
channel_send_sequence(PyObject *op, PyObject *sequence)
{
    PyObject *iterator = PyObject_GetIter(sequence), *item;
    Py_ssize_t count = 0;

    if (iterator == NULL) {
        return NULL;
    }
    for (; (item = PyIter_Next(iterator)) != NULL; count++) {
        PyObject *result = plus_channel_action(self_of(op), item, 1);

        if (result == NULL) {
            break;
        }
        Py_DECREF(result);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(count);
}

static PyObject *
channel_next(PyObject *op)
{
    struct plus_channel *channel = self_of(op);

    if (channel->closing && channel->balance <= 0) {
        return NULL; /* the end of the iteration */
    }
    return channel_receive(op, NULL);
}

PLUS_DOES(channel_close, self_of(self)->closing = true)
PLUS_DOES(channel_open, self_of(self)->closing = false)
PLUS_GETS(get_closed, PyBool_FromLong(self_of(self)->balance == 0 && self_of(self)->closing))
PLUS_GETS(get_preference, PyLong_FromLong(self_of(self)->preference))

static int
integer_of(PyObject *value, const char *refusal, int *sign)
{
    int overflow;
    long number;

    if (value == NULL || !PyLong_Check(value)) {
        PyErr_SetString(PyExc_TypeError, refusal);
        return -1;
    }
    number = PyLong_AsLongAndOverflow(value, &overflow);
    *sign = overflow != 0 ? overflow : (number > 0) - (number < 0);
    return 0;
}

static int
set_preference(PyObject *op, PyObject *value, void *ignored)
{
    int sign;

    if (integer_of(value, "preference must be set to an integer", &sign) < 0) {
        return -1;
    }
    self_of(op)->preference = (signed char)sign;
    return 0;
}

PLUS_GETS(get_schedule_all, PyLong_FromLong(self_of(self)->schedule_all))

static int
set_schedule_all(PyObject *op, PyObject *value, void *ignored)
{
    int sign;

    if (integer_of(value, "preference must be set to a bool or integer", &sign) < 0) {
        return -1;
    }
    self_of(op)->schedule_all = sign != 0;
    return 0;
}

PyObject *
plus_channel_made_at(PyObject *op, void *ignored)
{
    struct plus_channel *channel = self_of(op);

    if (channel->made_by == NULL) {
        Py_RETURN_NONE;
    }
    PyCodeObject *code = (PyCodeObject *)channel->made_by;

    return Py_BuildValue("(OiO)", code->co_filename, PyCode_Addr2Line(code, channel->made_at),
                         code->co_name);
}

static PyObject *
channel_repr(PyObject *op)
{
    struct plus_channel *channel = self_of(op);
    int balance = channel->balance;

    return PyUnicode_FromFormat("<%s %s%d at %p>", Py_TYPE(op)->tp_name,
                                balance < 0   ? "with receivers: "
                                : balance > 0 ? "with senders: "
                                              : "waiting: ",
                                balance < 0 ? -balance : balance, op);
}

/* For a subclass, protocols 0 and 1 would say that channel() takes no arguments. */
PyObject *
plus_refuse_pickling(PyObject *op, PyObject *ignored)
{
    PyErr_Format(PyExc_TypeError, "cannot pickle '%.100s' object", Py_TYPE(op)->tp_name);
    return NULL;
}

#define METHOD(name, ...) PLUS_METHOD(#name, channel_##name, __VA_ARGS__)

static PyMethodDef channel_methods[] = {
    METHOD(send, METH_O, "$self, value, /",
           "Give a value to a receiver; blocks while there is none.\n\n"
           "RuntimeError in a deadlock, ValueError if the channel is closed."),
    METHOD(receive, METH_NOARGS, "$self, /",
           "Take the value of a sender, or raise its exception; blocks while there is none."),
    METHOD(send_exception, METH_VARARGS, "$self, exc_class, /, *args",
           "Raise exc_class(*args) in a receiver."),
    METHOD(send_throw, METH_VARARGS, "$self, exc, val=None, tb=None, /",
           "Raise an exception in a receiver, as `raise` would."),
    METHOD(send_sequence, METH_O, "$self, iterable, /",
           "Send each item; return how many there were."),
    METHOD(close, METH_NOARGS, "$self, /",
           "Let nobody block on it any more; tasklets that already wait are served."),
    METHOD(open, METH_NOARGS, "$self, /", "Undo close()."),
    {"__reduce__", plus_channel_reduce, METH_NOARGS, NULL},
    {"__setstate__", plus_channel_set_state, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef channel_members[] = {
    {"balance", Py_T_INT, offsetof(struct plus_channel, balance), Py_READONLY,
     PyDoc_STR("How many wait: senders if positive, receivers if negative.")},
    {"queue", _Py_T_OBJECT, offsetof(struct plus_channel, head), Py_READONLY,
     PyDoc_STR("The first tasklet that waits, or None.")},
    {"closing", Py_T_BOOL, offsetof(struct plus_channel, closing), Py_READONLY,
     PyDoc_STR("Whether close() was called.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef channel_getset[] = {
    {"closed", get_closed, NULL, PyDoc_STR("Whether it is closing and nobody waits."), NULL},
    {"preference", get_preference, set_preference,
     PyDoc_STR("-1: a receiver runs at once (default); 1: a sender; 0: the caller goes on."), NULL},
    {"schedule_all", get_schedule_all, set_schedule_all,
     PyDoc_STR("Whether each action goes on to the next runnable tasklet."), NULL},
    {"made_at", plus_channel_made_at, NULL,
     PyDoc_STR("(file name, line, function) of the code that made it, or None."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject plus_channel_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.channel",
    .tp_basicsize = sizeof(struct plus_channel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        PyDoc_STR("channel()\n--\n\n"
                  "A meeting point of tasklets: a sender and a receiver wait for each other."),
    .tp_new = channel_new,
    .tp_init = channel_init,
    .tp_alloc = PyType_GenericAlloc,
    .tp_free = PyObject_GC_Del,
    .tp_dealloc = plus_channel_dealloc,
    .tp_traverse = plus_channel_traverse,
    .tp_clear = plus_channel_clear,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = channel_next,
    .tp_repr = channel_repr,
    .tp_methods = channel_methods,
    .tp_members = channel_members,
    .tp_getset = channel_getset,
    .tp_weaklistoffset = offsetof(struct plus_channel, weakrefs),
};
