/* Tasklets and generators for pickles: capturing and restoring their state.  Python code (_pickling/reducing.py) makes
 * the form of the pickle. */
#include "binding.h"

#include "../../_base/methods.h"
#include "../../_interp/facts/facts.h"
#include "../../_interp/saved_frames/frame_build.h"
#include "../../_interp/saved_frames/frame_capture.h"
#include "../../_interp/saved_frames/itertools_state.h"
#include "../_pickling/capturing.h"
#include "../channels/channel.h"
#include "../core/task.h"
#include "../scheduling/snapshot.h"
#include "tasklet.h"
#include "tasklet_py.h"

/* ---- the functions that a chain may end in ----------------------------------------------------- */

int
plus_pickling_prepare(PyObject *module)
{
    static const struct {
        PyTypeObject *type; /* NULL: the module */
        const char *name;
    } all[] = {
        {NULL, "schedule"},
        {NULL, "schedule_remove"},
        {&plus_channel_type, "send"},
        {&plus_channel_type, "receive"},
        {&plus_channel_type, "send_exception"},
        {&plus_channel_type, "send_throw"},
        {&plus_tasklet_type, "run"},
        {&plus_tasklet_type, "switch"},
        {&plus_tasklet_type, "throw"},
        {&plus_tasklet_type, "raise_exception"},
        {&plus_tasklet_type, "kill"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        PyObject *function = PyObject_GetAttrString(
            all[i].type != NULL ? (PyObject *)all[i].type : module, all[i].name);

        if (function == NULL) {
            return -1;
        }
        plus_capturing_ends_in(PyCFunction_Check(function)
                                   ? PyCFunction_GET_FUNCTION(function)
                                   : ((PyMethodDescrObject *)function)->d_method->ml_meth);
        Py_DECREF(function);
    }
    return PyType_Ready(&plus_snapshot_type);
}

/* ---- tasklets ---------------------------------------------------------------------------------- */

static struct plus_tasklet *
tasklet_of(PyObject *op)
{
    if (!PyObject_TypeCheck(op, &plus_tasklet_type)) {
        PyErr_Format(PyExc_TypeError, "a tasklet is required, not %.100s", Py_TYPE(op)->tp_name);
        return NULL;
    }
    return (struct plus_tasklet *)op;
}

/* The flags of _pickling/reducing.py. */
enum { ATOMIC = 1, IGNORE_NESTING = 2, BLOCK_TRAP = 4, ALIVE = 8, BLOCKED = 16 };

/* Returns op, or None if it is NULL; no new reference. */
static PyObject *
or_none(PyObject *op)
{
    return op != NULL ? op : Py_None;
}

static PyObject *
tasklets_capture(PyObject *module, PyObject *args)
{
    PyObject *op, *error, *frames = NULL, *handled = NULL, *call = NULL;

    if (!PyArg_ParseTuple(args, "OO:tasklets_capture", &op, &error)) {
        return NULL;
    }
    struct plus_tasklet *task = tasklet_of(op);

    if (task == NULL || plus_capturing_refused(error)) {
        return NULL;
    }
    const char *why = plus_capturing_why_not(task);

    if (why != NULL) {
        PyErr_SetString(error, why);
        return NULL;
    }
    /* Each allocation may run code that lets the tasklet go on, so each object is held by a reference. */
    PyObject *channel = Py_NewRef(or_none(task->blocked ? (PyObject *)task->channel : NULL));
    PyObject *value = Py_NewRef(task->tempval);
    int flags = (task->atomic ? ATOMIC : 0) | (task->ignore_nesting ? IGNORE_NESTING : 0) |
                (task->block_trap ? BLOCK_TRAP : 0) | (task->alive ? ALIVE : 0) |
                (task->blocked ? BLOCKED : 0);

    if (task->alive && task->started) {
        handled = Py_XNewRef(plus_pystate_handled(&task->fiber.state));
        frames = plus_capturing_frames(task, error);
    }
    else if (plus_is_snapshot(task->func) && plus_snapshot_frames(task->func) != NULL) {
        PyObject *adopted = Py_NewRef(plus_snapshot_frames(task->func));

        handled = Py_XNewRef(plus_snapshot_handled(task->func));
        frames = plus_frames_as_captured(adopted, error);
        Py_DECREF(adopted);
    }
    else if (task->alive) {
        call = Py_BuildValue("NNN", Py_NewRef(or_none(task->func)), Py_NewRef(or_none(task->args)),
                             Py_NewRef(or_none(task->kwargs)));
    }
    PyObject *result = NULL;

    if (!PyErr_Occurred()) {
        result = Py_BuildValue("(iOOOOO)", flags, value, or_none(frames), or_none(handled),
                               or_none(call), channel);
    }
    Py_DECREF(channel);
    Py_DECREF(value);
    Py_XDECREF(frames);
    Py_XDECREF(handled);
    Py_XDECREF(call);
    return result;
}

static PyObject *
tasklets_restore(PyObject *module, PyObject *args)
{
    PyObject *op, *frames, *handled, *value;

    if (!PyArg_ParseTuple(args, "OOOO:tasklets_restore", &op, &frames, &handled, &value)) {
        return NULL;
    }
    struct plus_tasklet *task = tasklet_of(op);

    if (task == NULL || plus_capturing_refused(PyExc_RuntimeError)) {
        return NULL;
    }
    if (task->alive || task->is_main || plus_is_running(task)) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet is alive");
        return NULL;
    }
    PyObject *none = PyTuple_New(0), *snapshot = NULL;

    if (handled != Py_None && !PyExceptionInstance_Check(handled)) {
        PyErr_SetString(PyExc_ValueError, "what is handled is no exception");
    }
    else if (none != NULL) {
        snapshot = plus_snapshot_make(frames, handled == Py_None ? NULL : handled);
    }
    if (snapshot == NULL) {
        Py_XDECREF(none);
        return NULL;
    }
    plus_set_value(task, snapshot);
    if (plus_tasklet_setup(task, none, NULL, false) < 0) {
        return NULL;
    }
    plus_set_value(task, Py_NewRef(value));
    Py_RETURN_NONE;
}

/* ---- channels ---------------------------------------------------------------------------------- */

/* Returns the tasklet if it may wait in a channel without having run.  Its own state may be set before or after
 * this. */
static struct plus_tasklet *
may_wait(PyObject *op, const struct plus_channel *channel)
{
    struct plus_tasklet *task = tasklet_of(op);

    if (task != NULL &&
        (task->is_main || task->started || task->vacated || !plus_is_floating(task) ||
         plus_is_coming(task) || task->sched->tstate == NULL || channel->waits != NULL)) {
        PyErr_SetString(PyExc_ValueError, "a tasklet in the queue of a channel has begun here");
        task = NULL;
    }
    return task;
}

static PyObject *
channel_waiting(PyObject *module, PyObject *op)
{
    PyObject *all = NULL;
    int balance = 0;

    if (!PyObject_TypeCheck(op, &plus_channel_type)) {
        PyErr_SetString(PyExc_TypeError, "a channel is required");
        return NULL;
    }
    struct plus_channel *channel = (struct plus_channel *)op;

    do { /* the queue may change while the tuple is made */
        Py_XDECREF(all);
        balance = channel->balance;
        all = PyTuple_New(balance < 0 ? -balance : balance);
    } while (all != NULL && balance != channel->balance);
    if (all == NULL) {
        return NULL;
    }
    struct plus_tasklet *task = channel->head;

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all); i++, task = task->next) {
        PyTuple_SET_ITEM(all, i, Py_NewRef(task));
    }
    return Py_BuildValue("iN", balance > 0 ? 1 : -1, all);
}

static PyObject *
channel_restore(PyObject *module, PyObject *args)
{
    PyObject *op, *tasklets;
    int direction;

    if (!PyArg_ParseTuple(args, "OO!i:channel_restore", &op, &PyTuple_Type, &tasklets,
                          &direction)) {
        return NULL;
    }
    if (!PyObject_TypeCheck(op, &plus_channel_type) || (direction != 1 && direction != -1)) {
        PyErr_SetString(PyExc_ValueError, "a channel, and 1 or -1, are required");
        return NULL;
    }
    struct plus_channel *channel = (struct plus_channel *)op;

    if (channel->head != NULL) {
        PyErr_SetString(PyExc_ValueError, "tasklets wait in the channel already");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tasklets); i++) {
        struct plus_tasklet *task = may_wait(PyTuple_GET_ITEM(tasklets, i), channel);

        if (task == NULL) {
            return NULL;
        }
        Py_INCREF(task); /* the queue's */
        plus_channel_insert(channel, task, direction, NULL);
    }
    Py_RETURN_NONE;
}

/* ---- generators -------------------------------------------------------------------------------- */

static PyObject *
generator_capture(PyObject *module, PyObject *args)
{
    PyObject *generator, *error;

    if (!PyArg_ParseTuple(args, "OO:generator_capture", &generator, &error)) {
        return NULL;
    }
    if (!PyGen_CheckExact(generator) && !PyCoro_CheckExact(generator)) {
        PyErr_Format(PyExc_TypeError, "a generator or coroutine is required, not %.100s",
                     Py_TYPE(generator)->tp_name);
        return NULL;
    }
    return plus_capturing_refused(error) ? NULL : plus_generator_capture(generator, error);
}

static PyObject *
generator_function(PyObject *module, PyObject *generator)
{
    PyObject *function = NULL;

    if (PyGen_CheckExact(generator) || PyCoro_CheckExact(generator)) {
        function = plus_generator_function(generator);
    }
    return function != NULL ? function : Py_NewRef(Py_None);
}

PLUS_RETURNS(generator_make,
             plus_capturing_refused(PyExc_RuntimeError) ? NULL : plus_generator_make(arg))

static PyObject *
generator_restore(PyObject *module, PyObject *args)
{
    PyObject *generator, *captured;

    if (!PyArg_ParseTuple(args, "OO:generator_restore", &generator, &captured) ||
        plus_generator_restore(generator, captured) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- iterators ---------------------------------------------------------------------------------- */

PLUS_RETURNS(itertools_are_known, PyBool_FromLong(plus_fact_refusal(PLUS_FACT_ITERTOOLS) == NULL))
PLUS_RETURNS(itertools_capture, plus_itertools_capture(arg))

static PyObject *
itertools_restore(PyObject *module, PyObject *args)
{
    PyObject *iterator, *captured;

    if (!PyArg_ParseTuple(args, "OO:itertools_restore", &iterator, &captured) ||
        plus_itertools_restore(iterator, captured) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PLUS_RETURNS(tasklets_capture_prepare, plus_capture_prepare(arg) < 0 ? NULL : Py_NewRef(Py_None))

PyMethodDef plus_pickling_methods[] = {
    PLUS_METHOD("tasklets_capture_prepare", tasklets_capture_prepare, METH_O,
                "$module, initialise, /",
                "Have `initialise` stand for the call of a class; before tasklets_capture()."),
    PLUS_METHOD("tasklets_capture", tasklets_capture, METH_VARARGS, "$module, tasklet, error, /",
                "(flags, tempval, frames, handled exception, (func, args, kwargs), channel), None "
                "for what there is not;\nraises `error`, which names why not."),
    PLUS_METHOD("tasklets_restore", tasklets_restore, METH_VARARGS,
                "$module, tasklet, frames, handled, value, /",
                "Have a tasklet that is not alive go on with captured frames, whose call gives "
                "value.\n\nValueError if they do not fit their code."),
    PLUS_METHOD("channel_waiting", channel_waiting, METH_O, "$module, channel, /",
                "(1 for senders or -1, the tasklets that wait, in their order)."),
    PLUS_METHOD("channel_restore", channel_restore, METH_VARARGS,
                "$module, channel, tasklets, direction, /",
                "Have tasklets that have not begun wait in an empty channel: senders (1) or "
                "receivers (-1).\n\nValueError if one of them cannot."),
    PLUS_METHOD("generator_capture", generator_capture, METH_VARARGS,
                "$module, generator, error, /",
                "What generator_restore() takes; None: it has ended."),
    PLUS_METHOD("generator_function", generator_function, METH_O, "$module, generator, /",
                "What made a generator or coroutine; None: it has ended."),
    PLUS_METHOD("generator_make", generator_make, METH_O, "$module, function, /",
                "A generator or coroutine that has not begun, its arguments empty tuples."),
    PLUS_METHOD("generator_restore", generator_restore, METH_VARARGS,
                "$module, generator, captured, /",
                "Put one that generator_make() made where another one was."),
    PLUS_METHOD("itertools_are_known", itertools_are_known, METH_NOARGS, "$module, /",
                "Whether the next two may be called."),
    PLUS_METHOD("itertools_capture", itertools_capture, METH_O, "$module, iterator, /",
                "What itertools_restore() takes: which fields there are not, then the fields."),
    PLUS_METHOD("itertools_restore", itertools_restore, METH_VARARGS,
                "$module, iterator, captured, /",
                "Put a new one of the same class where another one was; ValueError if it does not "
                "fit."),
    {NULL, NULL, 0, NULL},
};
