/* Tasklets and generators for pickles: what is taken from them and given to them.  The form of a pickle is made in
 * Python (_pickling.py). */
#include "pickling_py.h"

#include "../_interp/frame_capture.h"
#include "../_interp/frame_restore.h"
#include "channel_py.h"
#include "methods.h"
#include "snapshot.h"
#include "switching.h"
#include "task.h"
#include "tasklet.h"
#include "tasklet_py.h"
#include "tracing.h"

/* ---- what a chain may end in ------------------------------------------------------------------- */

/* Functions that give what the tasklet gets when it goes on, and do nothing else then. */
static PyCFunction ends[12];
static size_t end_count;

static int
add_end(PyObject *owner, const char *name)
{
    PyObject *function = PyObject_GetAttrString(owner, name);

    if (function == NULL) {
        return -1;
    }
    ends[end_count++] = PyCFunction_Check(function)
                            ? PyCFunction_GET_FUNCTION(function)
                            : ((PyMethodDescrObject *)function)->d_method->ml_meth;
    Py_DECREF(function);
    return 0;
}

int
plus_pickling_prepare(PyObject *module)
{
    static const struct {
        PyTypeObject *type; /* NULL: the module's */
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

    end_count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (add_end(all[i].type != NULL ? (PyObject *)all[i].type : module, all[i].name) < 0) {
            return -1;
        }
    }
    return PyType_Ready(&plus_snapshot_type);
}

static bool
is_end(PyObject *callable)
{
    PyCFunction function = NULL;

    if (PyCFunction_Check(callable)) {
        function = PyCFunction_GET_FUNCTION(callable);
    }
    else if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        function = ((PyMethodDescrObject *)callable)->d_method->ml_meth;
    }
    for (size_t i = 0; function != NULL && i < end_count; i++) {
        if (ends[i] == function) {
            return true;
        }
    }
    return false;
}

static bool
is_channel(PyObject *iterator)
{
    return iterator != NULL && PyObject_TypeCheck(iterator, &plus_channel_type) &&
           Py_TYPE(iterator)->tp_iternext == plus_channel_type.tp_iternext;
}

static const struct plus_capture_ends chain_ends = {is_end, is_channel};

static const enum plus_fact needed[] = {PLUS_FACT_FRAMES, PLUS_FACT_OPERANDS,
                                        PLUS_FACT_FRAME_BUILDING, PLUS_FACT_THREAD_STATE};

static int
refuse_here(PyObject *error)
{
    const char *refusal = plus_facts_refusal(needed, sizeof needed / sizeof needed[0]);

    if (refusal != NULL) {
        PyErr_Format(error, "tasklets cannot be pickled here: %s", refusal);
    }
    return refusal != NULL;
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

static const char *
why_not(const struct plus_tasklet *task)
{
    if (task->is_main) {
        return "the main tasklet of a thread cannot be pickled";
    }
    if (plus_is_running(task)) {
        return "a tasklet that is running cannot be pickled";
    }
    if (task->sched->tstate == NULL && task->started) {
        return "the thread of this tasklet has ended";
    }
    if (task->abandoned) {
        return "this tasklet was given up, and never goes on";
    }
    if (task->thrown != NULL || task->due != NULL) {
        return "this tasklet is about to raise an exception";
    }
    if (plus_called_run(task->sched, task)) {
        return "this tasklet has called run(), and waits for the others";
    }
    if (task->blocked && task->channel != NULL && task->channel->waits != NULL) {
        return "this tasklet waits for something outside of it, not for a channel";
    }
    return NULL;
}

/* The frames of one that has begun. */
static PyObject *
capture_frames(struct plus_tasklet *task, PyObject *error)
{
    struct plus_frames frames = plus_tasklet_frames(task);
    PyObject *called = plus_is_snapshot(task->func) ? NULL : task->func;
    PyObject *tuple = plus_frames_capture(&frames, called, &chain_ends, error);

    if (tuple != NULL && PyTuple_GET_SIZE(tuple) == 0) {
        PyErr_SetString(error, "this tasklet is in C code only");
        Py_CLEAR(tuple);
    }
    return tuple;
}

bool
plus_tasklet_is_restorable(PyObject *op)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;

    if (why_not(task) != NULL ||
        plus_facts_refusal(needed, sizeof needed / sizeof needed[0]) != NULL) {
        return false;
    }
    if (!task->alive || !task->started) {
        return true;
    }
    PyObject *frames = capture_frames(task, PyExc_ValueError);

    PyErr_Clear();
    Py_XDECREF(frames);
    return frames != NULL;
}

/* Those that _pickling.py knows. */
enum { ATOMIC = 1, IGNORE_NESTING = 2, BLOCK_TRAP = 4, ALIVE = 8, BLOCKED = 16 };

static int
flags_of(const struct plus_tasklet *task)
{
    return (task->atomic ? ATOMIC : 0) | (task->ignore_nesting ? IGNORE_NESTING : 0) |
           (task->block_trap ? BLOCK_TRAP : 0) | (task->alive ? ALIVE : 0) |
           (task->blocked ? BLOCKED : 0);
}

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

    if (task == NULL || refuse_here(error)) {
        return NULL;
    }
    const char *why = why_not(task);

    if (why != NULL) {
        PyErr_SetString(error, why);
        return NULL;
    }
    if (task->alive && task->started) {
        frames = capture_frames(task, error);
        handled = plus_pystate_handled(&task->fiber.state);
    }
    else if (plus_is_snapshot(task->func) && plus_snapshot_frames(task->func) != NULL) {
        frames = Py_NewRef(plus_snapshot_frames(task->func));
        handled = plus_snapshot_handled(task->func);
    }
    else if (task->alive) {
        call = PyTuple_Pack(3, or_none(task->func), or_none(task->args), or_none(task->kwargs));
    }
    PyObject *result = NULL;

    if (!PyErr_Occurred()) {
        result = Py_BuildValue("(iOOOOO)", flags_of(task), task->tempval, or_none(frames),
                               or_none(handled), or_none(call),
                               or_none(task->blocked ? (PyObject *)task->channel : NULL));
    }
    Py_XDECREF(frames);
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

    if (task == NULL || refuse_here(PyExc_RuntimeError)) {
        return NULL;
    }
    if (task->alive || task->is_main || plus_is_running(task)) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet is alive");
        return NULL;
    }
    PyObject *none = PyTuple_New(0), *snapshot = NULL;

    if (none != NULL) {
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

/* One that may wait in a channel though it has never run.  Its own state may come before this, or after. */
static struct plus_tasklet *
may_wait(PyObject *op, const struct plus_channel *channel)
{
    struct plus_tasklet *task = tasklet_of(op);

    if (task != NULL &&
        (task->is_main || task->started || !plus_is_floating(task) || plus_is_coming(task) ||
         task->sched->tstate == NULL || channel->waits != NULL)) {
        PyErr_SetString(PyExc_ValueError, "a tasklet in the queue of a channel has begun here");
        task = NULL;
    }
    return task;
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
    return refuse_here(error) ? NULL : plus_generator_capture(generator, error);
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

static PyObject *
generator_make(PyObject *module, PyObject *function)
{
    return refuse_here(PyExc_RuntimeError) ? NULL : plus_generator_make(function);
}

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

static PyObject *
tasklets_capture_prepare(PyObject *module, PyObject *function)
{
    if (plus_capture_prepare(function) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

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
    {NULL, NULL, 0, NULL},
};

/* ---- what pickle calls ------------------------------------------------------------------------- */

static PyObject *
call_python(const char *name, PyObject *op, PyObject *more)
{
    PyObject *module = PyImport_ImportModule("cpythonplus.tasklets._pickling");
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    PyObject *result =
        function == NULL ? NULL : PyObject_CallFunctionObjArgs(function, op, more, NULL);

    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *
plus_tasklet_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_tasklet", op, NULL);
}

PyObject *
plus_tasklet_set_state(PyObject *op, PyObject *state)
{
    return call_python("set_tasklet_state", op, state);
}

PyObject *
plus_tasklet_copy(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("copy_tasklet", op, NULL);
}

PyObject *
plus_channel_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_channel", op, NULL);
}

PyObject *
plus_channel_set_state(PyObject *op, PyObject *state)
{
    return call_python("set_channel_state", op, state);
}

PyObject *
plus_bomb_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_bomb", op, NULL);
}
