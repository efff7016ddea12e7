/* The type `tasklet`. */
#include "tasklet_py.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../threads/binding.h"
#include "../_pickling/capturing.h"
#include "../_pickling/vacating.h"
#include "../channels/channel.h"
#include "../core/bomb.h"
#include "../core/cold.h"
#include "../core/pickle_calls.h"
#include "../scheduling/snapshot.h"
#include "../scheduling/switching.h"
#include "../tracing/tracing.h"
#include "context.h"
#include "finalizing.h"
#include "tasklet.h"

static struct plus_tasklet *
self_of(PyObject *op)
{
    return (struct plus_tasklet *)op;
}

static PyObject *
self_or_null(PyObject *op, int failed)
{
    return failed ? NULL : Py_NewRef(op);
}

/* ---- life ------------------------------------------------------------------------------------- */

static struct plus_tasklet *
make(PyTypeObject *type, struct plus_scheduler *sched)
{
    struct plus_tasklet *task = (struct plus_tasklet *)type->tp_alloc(type, 0);

    if (task != NULL) { /* the rest is zero */
        task->tempval = Py_NewRef(Py_None);
        task->sched = sched;
        sched->references++;
    }
    return task;
}

struct plus_tasklet *
plus_tasklet_make_main(struct plus_scheduler *sched)
{
    struct plus_tasklet *task = make(&plus_tasklet_type, sched);

    if (task != NULL) {
        task->alive = task->started = task->is_main = true;
    }
    return task;
}

static PyObject *
tasklet_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct plus_tasklet *task = sched != NULL ? make(type, sched) : NULL;

    if (task != NULL) {
        task->atomic = sched->running->atomic;
    }
    return (PyObject *)task;
}

static PyObject *
null_if_none(PyObject *op)
{
    return op == Py_None ? NULL : op;
}

static const char *const bind_names[] = {"func", "args", "kwargs"};
static const struct plus_signature bind_signature = {"bind", bind_names, 3, 0, 0};

static int
bind_to(PyObject *op, PyObject *const *values)
{
    return plus_tasklet_bind(self_of(op), null_if_none(values[0]), null_if_none(values[1]),
                             null_if_none(values[2]));
}

static int
bind(PyObject *op, PyObject *args, PyObject *kwargs)
{
    PyObject *values[3];

    return plus_init_arguments(&bind_signature, args, kwargs, values) < 0 ? -1
                                                                          : bind_to(op, values);
}

/* tasklet(func) without intermediate tuples, which would be half of the cost of making one. */
static PyObject *
tasklet_vectorcall_new(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *values[3], *op = tasklet_new((PyTypeObject *)type, NULL, NULL);

    if (op != NULL && kwnames == NULL && count == 1 && PyCallable_Check(args[0])) {
        plus_set_value(self_of(op), Py_NewRef(args[0]));
    }
    else if (op != NULL && (plus_arguments(&bind_signature, args, count, kwnames, values) < 0 ||
                            bind_to(op, values) < 0)) {
        Py_CLEAR(op);
    }
    return op;
}

static int
tasklet_clear(PyObject *op)
{
    struct plus_tasklet *task = self_of(op);

    if (task->alive && task->started) {
        /* This garbage did not end, and was not kept: a derived class's __del__ does not call ours, for example.  The
         * objects on its stack are being cleared. */
        if (!task->is_main && !plus_is_running(task)) {
            plus_tasklet_abandon(task);
        }
        return 0;
    }
    /* A destructor that runs here and sees the tasklet finds it not alive, and without a function. */
    task->alive = task->started = false;
    plus_vacated_forget(task);
    plus_set_value(task, Py_NewRef(Py_None));
    Py_CLEAR(task->func);
    Py_CLEAR(task->args);
    Py_CLEAR(task->kwargs);
    Py_CLEAR(task->thrown);
    Py_CLEAR(task->due);
    plus_tracing_drop(task);
    plus_pystate_clear(&task->fiber.state);
    return 0;
}

static int
tasklet_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct plus_tasklet *task = self_of(op);

    Py_VISIT(task->tempval);
    Py_VISIT(task->func);
    Py_VISIT(task->args);
    Py_VISIT(task->kwargs);
    Py_VISIT(task->thrown);
    Py_VISIT(task->due);
    if (plus_is_parked(task)) {
        if (task->blocked && !task->uncalled) {
            /* the reference that send() or receive() holds during the wait */
            Py_VISIT(task->channel);
        }
        struct plus_frames frames = plus_tasklet_frames(task);
        int result = plus_frames_visit(&frames, visit, arg);

        if (result != 0) {
            return result;
        }
    }
    return plus_pystate_traverse(&task->fiber.state, visit, arg);
}

static void
tasklet_dealloc(PyObject *op)
{
    struct plus_tasklet *task = self_of(op);

    if (plus_tasklet_outlives(op)) {
        if (PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_HEAPTYPE)) {
            Py_INCREF(Py_TYPE(op)); /* the derived type's dealloc drops it next */
        }
        return;
    }
    PyObject_GC_UnTrack(op);
    PyObject_ClearWeakRefs(op);
    task->alive = false;
    (void)tasklet_clear(op);
    Py_DECREF(task->tempval);
    if (task->stack != NULL) {
        plus_stack_give(&task->sched->stacks, task->stack);
    }
    plus_scheduler_release(task->sched);
    Py_TYPE(op)->tp_free(op);
}

/* ---- methods ---------------------------------------------------------------------------------- */

static PyObject *
tasklet_bind(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return self_or_null(op, bind(op, args, kwargs));
}

static PyObject *
tasklet_call(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return self_or_null(op,
                        plus_tasklet_setup(self_of(op), Py_NewRef(args), Py_XNewRef(kwargs), true));
}

PLUS_RETURNS(tasklet_insert, self_or_null(self, plus_tasklet_insert(self_of(self))))
PLUS_RETURNS(tasklet_remove, self_or_null(self, plus_tasklet_remove(self_of(self))))
PLUS_RETURNS(tasklet_run, plus_tasklet_run(self_of(self), false))
PLUS_RETURNS(tasklet_switch, plus_tasklet_run(self_of(self), true))

static PyObject *
tasklet_throw(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"exc", "val", "tb", "pending", NULL};
    PyObject *exc, *value = Py_None, *traceback = Py_None;
    int pending = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOp:throw", names, &exc, &value, &traceback,
                                     &pending)) {
        return NULL;
    }
    PyObject *bomb = plus_bomb_from_triple(exc, value, traceback);

    return bomb != NULL ? plus_tasklet_throw(self_of(op), pending != 0, bomb) : NULL;
}

static PyObject *
tasklet_raise_exception(PyObject *op, PyObject *args)
{
    PyObject *bomb = plus_bomb_from_class(args, "tasklet.raise_exception");

    return bomb != NULL ? plus_tasklet_throw(self_of(op), false, bomb) : NULL;
}

static PyObject *
tasklet_kill(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pending", NULL};
    int pending = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:kill", names, &pending)) {
        return NULL;
    }
    return plus_tasklet_kill(self_of(op), pending != 0);
}

static PyObject *
set_flag(bool *flag, PyObject *value, const char *name)
{
    bool old = *flag;

    if (!PyLong_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s needs exactly one bool or integer", name);
        return NULL;
    }
    *flag = PyObject_IsTrue(value) > 0;
    return PyBool_FromLong(old);
}

static PyObject *
tasklet_set_atomic(PyObject *op, PyObject *value)
{
    struct plus_tasklet *task = self_of(op);
    PyObject *old = set_flag(&task->atomic, value, "set_atomic");

    if (old != NULL && task->sched == plus_scheduler_own && plus_is_running(task)) {
        plus_follow_atomic(task->sched);
    }
    return old;
}

PLUS_RETURNS(tasklet_set_ignore_nesting,
             set_flag(&self_of(self)->ignore_nesting, arg, "set_ignore_nesting"))

static PyObject *
tasklet_bind_thread(PyObject *op, PyObject *args)
{
    struct plus_tasklet *task = self_of(op);
    struct plus_scheduler *target;
    long ident = -1;

    if (!PyArg_ParseTuple(args, "|l:bind_thread", &ident)) {
        return NULL;
    }
    if (ident < -1) {
        PyErr_SetString(PyExc_OverflowError, "no thread has a negative number");
        return NULL;
    }
    target = ident == -1 ? plus_scheduler_get() : plus_scheduler_of_thread((unsigned long)ident);
    if (target == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "bad thread");
        }
        return NULL;
    }
    if (target == task->sched) {
        Py_RETURN_NONE;
    }
    if ((task->next != NULL && !task->blocked) || plus_is_coming(task) || plus_is_running(task)) {
        PyErr_SetString(PyExc_RuntimeError, "can't (re)bind a runnable tasklet");
        return NULL;
    }
    if (plus_has_begun(task)) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet has C state on its stack");
        return NULL;
    }
    if (task->blocked && task->channel->waits != NULL) { /* its timer belongs to its thread */
        PyErr_SetString(PyExc_RuntimeError, "can't (re)bind a tasklet that waits for a time");
        return NULL;
    }
    if (task->stack != NULL) { /* a soft watchdog has stopped it before it began */
        plus_stack_give(&task->sched->stacks, task->stack);
        task->stack = NULL;
    }
    target->references++;
    plus_scheduler_release(task->sched);
    task->sched = target;
    Py_RETURN_NONE;
}

/* ---- attributes ------------------------------------------------------------------------------- */

enum { BLOCK_TRAP, IS_MAIN, IS_CURRENT, ALIVE, PAUSED, SCHEDULED, RESTORABLE };

static PyObject *
get_flag(PyObject *op, void *which)
{
    const struct plus_tasklet *task = self_of(op);
    bool there = task->sched->tstate != NULL;

    switch ((intptr_t)which) {
    case BLOCK_TRAP:
        return PyBool_FromLong(task->block_trap);
    case IS_MAIN:
        return PyBool_FromLong(there && task->is_main);
    case IS_CURRENT:
        return PyBool_FromLong(plus_is_running(task));
    case ALIVE:
        return PyBool_FromLong(there && task->alive);
    case PAUSED:
        return PyBool_FromLong(there && task->alive && plus_is_floating(task) &&
                               task->sched->running != task);
    case SCHEDULED:
        return PyBool_FromLong(!plus_is_floating(task));
    default:
        return PyBool_FromLong(plus_capturing_is_possible(self_of(op)));
    }
}

static int
set_block_trap(PyObject *op, PyObject *value, void *ignored)
{
    if (value == NULL || !PyLong_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "block_trap must be set to a bool or integer");
        return -1;
    }
    self_of(op)->block_trap = PyObject_IsTrue(value) > 0;
    return 0;
}

PLUS_GETS(get_tempval, Py_NewRef(self_of(self)->tempval))

static int
set_tempval(PyObject *op, PyObject *value, void *ignored)
{
    plus_set_value(self_of(op), Py_NewRef(value != NULL ? value : Py_None));
    return 0;
}

static PyObject *
get_thread_id(PyObject *op, void *ignored)
{
    PyThreadState *tstate = self_of(op)->sched->tstate;

    return tstate != NULL ? PyLong_FromUnsignedLong(plus_pystate_ident(tstate))
                          : PyLong_FromLong(-1);
}

static PyObject *
get_frame(PyObject *op, void *ignored)
{
    struct plus_tasklet *task = self_of(op);
    PyObject *frame = NULL;

    plus_seat(task);
    if (plus_is_running(task)) {
        int collects = PyGC_Disable(); /* see _base/stacks.h */
        frame = (PyObject *)PyThreadState_GetFrame(task->sched->tstate);
        if (collects) {
            PyGC_Enable();
        }
    }
    else if (task->alive && task->started && task->sched->tstate != NULL) {
        plus_tasklet_warm(task); /* a frame object points into the stack */
        struct plus_frames frames = plus_tasklet_frames(task);

        frame = plus_frames_object(&frames);
    }
    if (frame == NULL && !PyErr_Occurred()) {
        Py_RETURN_NONE;
    }
    return frame;
}

static PyObject *
get_nesting_level(PyObject *op, void *ignored)
{
    struct plus_frames frames = plus_tasklet_frames_now(self_of(op));

    return PyLong_FromLong(plus_frames_nesting(&frames));
}

static PyObject *
get_recursion_depth(PyObject *op, void *ignored)
{
    struct plus_tasklet *task = self_of(op);
    int depth = plus_has_begun(task) ? task->fiber.state.recursion_depth : 0;

    if (plus_is_running(task)) {
        depth = plus_pystate_depth(task->sched->tstate);
    }
    else if (task->alive && depth == 0 && plus_is_snapshot(task->func)) {
        PyObject *frames = plus_snapshot_frames(task->func); /* loaded, and not yet gone on */

        depth = frames == NULL ? 0 : (int)PyTuple_GET_SIZE(frames);
    }
    return PyLong_FromLong(depth);
}

static PyObject *
tasklet_repr(PyObject *op)
{
    const struct plus_tasklet *task = self_of(op);
    const char *state = !task->alive ? (task->tempval == Py_None ? "dead" : "bound")
                        : task->sched->tstate == NULL  ? "without thread"
                        : task->sched->running == task ? "current"
                        : task->blocked > 0            ? "sending"
                        : task->blocked < 0            ? "receiving"
                        : task->next != NULL           ? "runnable"
                                                       : "paused";

    return PyUnicode_FromFormat("<%s %s%s at %p>", Py_TYPE(op)->tp_name,
                                task->is_main ? "main, " : "", state, op);
}

#define METHOD(name, ...) PLUS_METHOD(#name, tasklet_##name, __VA_ARGS__)
#define METHOD_KW(name, ...) PLUS_METHOD_KW(#name, tasklet_##name, __VA_ARGS__)

static PyMethodDef tasklet_methods[] = {
    METHOD_KW(bind, METH_VARARGS | METH_KEYWORDS, "$self, /, func=None, args=None, kwargs=None",
              "Bind to a function, and to arguments if given; not made runnable.  Returns self.\n\n"
              "RuntimeError if it is scheduled, current, or has begun."),
    PLUS_METHOD_KW(
        "setup", tasklet_call, METH_VARARGS | METH_KEYWORDS, "$self, /, *args, **kwargs",
        "Give the arguments and make it runnable, at the end of the queue.  Returns self."),
    METHOD(insert, METH_NOARGS, "$self, /",
           "Make it runnable, at the end of its thread's queue.  Returns self."),
    METHOD(remove, METH_NOARGS, "$self, /", "Take it out of the queue.  Returns self."),
    METHOD(run, METH_NOARGS, "$self, /", "Run it now; in another thread: as the next one there."),
    METHOD(switch, METH_NOARGS, "$self, /",
           "Run it now, and take the current one out of the queue."),
    METHOD_KW(throw, METH_VARARGS | METH_KEYWORDS,
              "$self, /, exc, val=None, tb=None, pending=False",
              "Raise an exception in it: at once, or (pending) when its turn comes."),
    METHOD(raise_exception, METH_VARARGS, "$self, exc_class, /, *args",
           "Raise exc_class(*args) in it at once."),
    METHOD_KW(kill, METH_VARARGS | METH_KEYWORDS, "$self, /, pending=False",
              "Raise TaskletExit in it; a tasklet that has not begun is just unbound."),
    METHOD(set_atomic, METH_O, "$self, flag, /",
           "Whether a watchdog must not interrupt it, and its thread keeps the GIL while it\n"
           "runs.  Returns what it was."),
    METHOD(set_ignore_nesting, METH_O, "$self, flag, /",
           "Whether a watchdog may interrupt it inside of C calls.  Returns what it was."),
    METHOD(bind_thread, METH_VARARGS, "$self, thread_id=-1, /",
           "Let it run in the current thread, or in that one.  RuntimeError if it has begun."),
    PLUS_METHOD("set_context", plus_tasklet_set_context, METH_O, "$self, context, /",
                "Let it run in this contextvars.Context from now on.  Returns self.\n\n"
                "RuntimeError inside of Context.run(), and if another thread has it current or "
                "scheduled."),
    PLUS_METHOD_KW("context_run", plus_tasklet_context_run, METH_FASTCALL | METH_KEYWORDS,
                   "$self, func, /, *args, **kwargs",
                   "Call in the context of this tasklet; returns and raises what the call does."),
    {"__reduce__", plus_tasklet_reduce, METH_NOARGS, NULL},
    {"__setstate__", plus_tasklet_set_state, METH_O, NULL},
    {"__copy__", plus_tasklet_copy, METH_NOARGS, NULL},
    {"__deepcopy__", plus_tasklet_deepcopy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

#define MEMBER(name, type, field, doc)                                                             \
    {name, type, offsetof(struct plus_tasklet, field), Py_READONLY, PyDoc_STR(doc)}

static PyMemberDef tasklet_members[] = {
    MEMBER("blocked", Py_T_BOOL, blocked, "Whether it waits on a channel."), /* 1 or -1 */
    MEMBER("atomic", Py_T_BOOL, atomic, "See set_atomic."),
    MEMBER("ignore_nesting", Py_T_BOOL, ignore_nesting, "See set_ignore_nesting."),
    MEMBER("next", _Py_T_OBJECT, next, "The one after it in its queue, or None."),
    MEMBER("prev", _Py_T_OBJECT, prev, "The one before it in its queue, or None."),
    MEMBER("_channel", _Py_T_OBJECT, channel, "The channel it waits on, or None."),
    {NULL, 0, 0, 0, NULL},
};

#define FLAG(name, which, doc) {name, get_flag, NULL, PyDoc_STR(doc), (void *)(intptr_t)(which)}

#define ATTRIBUTE(name, get, set, doc, closure) {name, get, set, PyDoc_STR(doc), closure}

static PyGetSetDef tasklet_getset[] = {
    FLAG("is_main", IS_MAIN, "Whether it is the first of its thread."),
    FLAG("is_current", IS_CURRENT, "Whether it is the one that its thread runs."),
    FLAG("alive", ALIVE, "Whether it has arguments and has not ended."),
    FLAG("paused", PAUSED, "Whether it is alive and neither runnable nor blocked."),
    FLAG("scheduled", SCHEDULED, "Whether it is runnable or blocked."),
    FLAG("restorable", RESTORABLE,
         "Whether it can be pickled, as far as its frames are concerned."),
    ATTRIBUTE("block_trap", get_flag, set_block_trap,
              "Whether blocking on a channel raises RuntimeError instead.",
              (void *)(intptr_t)BLOCK_TRAP),
    ATTRIBUTE("tempval", get_tempval, set_tempval,
              "What it gets when it runs next; before that, its function.", NULL),
    ATTRIBUTE("thread_id", get_thread_id, NULL,
              "threading.get_ident() of its thread; -1 when that has ended.", NULL),
    ATTRIBUTE("frame", get_frame, NULL, "The innermost Python frame that it is in, or None.", NULL),
    ATTRIBUTE("nesting_level", get_nesting_level, NULL,
              "How often C code has called Python code in it: a watchdog waits until it is 0.",
              NULL),
    ATTRIBUTE("recursion_depth", get_recursion_depth, NULL, "Python calls that it is in.", NULL),
    ATTRIBUTE("trace_function", plus_tasklet_get_tracer, plus_tasklet_set_tracer,
              "Its sys.gettrace(); setting it is its sys.settrace().", NULL),
    ATTRIBUTE("profile_function", plus_tasklet_get_tracer, plus_tasklet_set_tracer,
              "Its sys.getprofile(); setting it is its sys.setprofile().", (void *)1),
    ATTRIBUTE("context_id", plus_tasklet_context_id, NULL,
              "id() of the context that it runs in; None: it has none yet.", NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject plus_tasklet_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.tasklet",
    .tp_basicsize = sizeof(struct plus_tasklet),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = PyDoc_STR("tasklet(func=None, args=None, kwargs=None)\n--\n\n"
                        "A function that runs in turns with others of its thread.\n\n"
                        "tasklet(func)(*args) makes it runnable."),
    .tp_new = tasklet_new,
    .tp_init = bind,
    .tp_alloc = PyType_GenericAlloc,
    .tp_free = PyObject_GC_Del,
    .tp_dealloc = tasklet_dealloc,
    .tp_finalize = plus_tasklet_finalize,
    .tp_traverse = tasklet_traverse,
    .tp_clear = tasklet_clear,
    .tp_call = tasklet_call,
    .tp_repr = tasklet_repr,
    .tp_methods = tasklet_methods,
    .tp_members = tasklet_members,
    .tp_getset = tasklet_getset,
    .tp_weaklistoffset = offsetof(struct plus_tasklet, weakrefs),
    .tp_vectorcall = tasklet_vectorcall_new,
};
