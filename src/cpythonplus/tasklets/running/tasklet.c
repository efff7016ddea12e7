/* The operations on a tasklet from outside of it.
 *
 * Semantics and wording: Stackless Python 3.x, Stackless/module/taskletobject.c.
 */
#include "tasklet.h"

#include "../../_base/process/clock.h"
#include "../core/bomb.h"
#include "../core/lists.h"
#include "../scheduling/switching.h"
#include "../tracing/tracing.h"

static int
refuse(const char *text)
{
    PyErr_SetString(PyExc_RuntimeError, text);
    return -1;
}

/* The function, arguments and context of a tasklet: references, or NULL. */
struct bound {
    PyObject *value, *func, *args, *kwargs, *context;
};

/* Puts `bound` into a tasklet that has not begun, and returns its former values there.  Runs no Python code. */
static void
exchange(struct plus_tasklet *task, struct bound *bound)
{
    struct bound old = {task->tempval, task->func, task->args, task->kwargs,
                        task->fiber.state.context};

    plus_vacated_forget(task);
    task->tempval = bound->value;
    task->func = bound->func;
    task->args = bound->args;
    task->kwargs = bound->kwargs;
    task->fiber.state.context = bound->context;
    task->alive = bound->args != NULL;
    task->started = false;
    task->has_greenlets = false;
    task->fiber.sp = NULL;
    *bound = old;
}

/* Called last, because destructors may call back, and bind the same tasklet. */
static void
drop(struct bound *bound)
{
    Py_XDECREF(bound->value);
    Py_XDECREF(bound->func);
    Py_XDECREF(bound->args);
    Py_XDECREF(bound->kwargs);
    Py_XDECREF(bound->context);
}

static bool
has_own_context(const struct plus_tasklet *task)
{
    return task->own_context && task->fiber.state.context != NULL;
}

/* Copies the context of the running code; NULL if it has none.  Returns -1 without memory.
 *
 * On 3.11 the new context may start a collection.  A finaliser that then sets a context variable frees the variables
 * that the interpreter is about to copy, of which it has no reference. */
static int
copy_context(PyObject **context)
{
    int collects = PyGC_Disable();

    *context = PyThreadState_Get()->context != NULL ? PyContext_CopyCurrent() : NULL;
    if (collects) {
        PyGC_Enable();
    }
    return *context == NULL && PyErr_Occurred() ? -1 : 0;
}

static const char *
why_no_setup(struct plus_tasklet *task)
{
    if (task->alive) {
        return "tasklet is alive";
    }
    if (plus_is_running(task)) { /* called in a callback at the tasklet's end */
        return "the current tasklet cannot begin again";
    }
    if (task->tempval == Py_None) {
        return "the tasklet was not bound to a function";
    }
    return task->sched->tstate == NULL ? "tasklet has no thread" : NULL;
}

int
plus_tasklet_setup(struct plus_tasklet *task, PyObject *args, PyObject *kwargs, bool insert)
{
    struct bound bound = {.args = args, .kwargs = kwargs};
    int result = has_own_context(task) ? 0 : copy_context(&bound.context);
    const char *why = result < 0 ? NULL : why_no_setup(task);

    if (why != NULL) {
        result = refuse(why);
    }
    if (result == 0) {
        PyObject *unused = NULL;

        if (has_own_context(task)) {
            unused = bound.context;
            bound.context = Py_NewRef(task->fiber.state.context);
        }
        bound.value = Py_NewRef(Py_None);
        bound.func = Py_NewRef(task->tempval);
        exchange(task, &bound);
        plus_tracing_inherit(task); /* may run code that inserts or kills the tasklet */
        result = insert ? plus_tasklet_insert(task) : 0;
        Py_XDECREF(unused);
    }
    drop(&bound);
    return result;
}

static const char *
why_no_bind(struct plus_tasklet *task, PyObject *func, bool call)
{
    if (plus_is_running(task)) {
        return "can't (re)bind the current tasklet";
    }
    if (!plus_is_floating(task) || plus_is_coming(task)) {
        return "tasklet is scheduled";
    }
    if (task->is_main && func == NULL) {
        return "can't unbind the main tasklet";
    }
    if (plus_has_begun(task)) { /* even if its thread has ended: the stack stays */
        return "tasklet has C state on its stack";
    }
    if (call && func == NULL && task->tempval == Py_None) {
        return "the tasklet was not bound to a function";
    }
    return call && task->sched->tstate == NULL ? "tasklet has no thread" : NULL;
}

int
plus_tasklet_bind(struct plus_tasklet *task, PyObject *func, PyObject *args, PyObject *kwargs)
{
    if (func != NULL && !PyCallable_Check(func)) {
        PyErr_SetString(PyExc_TypeError, "tasklet function must be a callable or None");
        return -1;
    }
    if (args != NULL && !PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "tasklet args must be a tuple or None");
        return -1;
    }
    if (kwargs != NULL && !PyDict_Check(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "tasklet kwargs must be a dictionary or None");
        return -1;
    }
    bool call = args != NULL || kwargs != NULL;
    struct bound bound = {.kwargs = Py_XNewRef(kwargs)};
    int result = call ? copy_context(&bound.context) : 0;

    if (result == 0 && call) {
        bound.args = args != NULL ? Py_NewRef(args) : PyTuple_New(0);
        result = bound.args != NULL ? 0 : -1;
    }
    const char *why = result < 0 ? NULL : why_no_bind(task, func, call);

    while (result == 0 && why == NULL && task->fiber.state.tracers_given) {
        plus_tracing_drop(task); /* may run code */
        why = why_no_bind(task, func, call);
    }
    if (why != NULL) {
        result = refuse(why);
    }
    if (result == 0) {
        PyObject *unused = NULL, *known = func != NULL ? func : task->tempval;

        if (func != NULL) {
            task->own_context = false;
        }
        else if (has_own_context(task) || !call) {
            unused = bound.context;
            bound.context = Py_XNewRef(task->fiber.state.context);
        }
        bound.value = Py_NewRef(call ? Py_None : func != NULL ? func : Py_None);
        bound.func = call ? Py_NewRef(known) : NULL;
        exchange(task, &bound);
        if (call) {
            plus_tracing_inherit(task);
        }
        Py_XDECREF(unused);
    }
    drop(&bound);
    return result;
}

int
plus_tasklet_insert(struct plus_tasklet *task)
{
    if (task->blocked) {
        return refuse("You cannot run a blocked tasklet");
    }
    if (task->next != NULL) {
        return 0;
    }
    if (!task->alive || task->abandoned) {
        return refuse("You cannot run an unbound(dead) tasklet");
    }
    if (task->sched->tstate == NULL) {
        return refuse("Target thread isn't initialized");
    }
    plus_queue_insert((struct plus_tasklet *)Py_NewRef(task));
    plus_scheduler_wake(task->sched);
    return 0;
}

int
plus_tasklet_remove(struct plus_tasklet *task)
{
    if (task->sched->tstate == NULL) {
        return 0;
    }
    if (task->blocked) {
        return refuse("You cannot remove a blocked tasklet.");
    }
    if (task == task->sched->running) {
        return refuse("The current tasklet cannot be removed.");
    }
    if (task->next != NULL) {
        task->parked_ns = plus_now_coarse_ns();
        plus_queue_remove(task);
        Py_DECREF(task);
    }
    return 0;
}

static PyObject *
run_in_other_thread(struct plus_tasklet *task)
{
    struct plus_scheduler *there = task->sched;
    bool queued = task->next != NULL;

    if (there->tstate == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet has no thread");
        return NULL;
    }
    if (plus_tasklet_insert(task) < 0) {
        return NULL;
    }
    if (!queued && there->current != task) {
        /* Make it the next one there.  (A thread that was woken, but has not got the GIL yet, still rests.) */
        plus_queue_remove(task);
        if (there->idle.resting) {
            plus_queue_insert(task);
            there->current = task;
        }
        else {
            plus_queue_insert_next(task);
        }
    }
    Py_RETURN_NONE;
}

PyObject *
plus_tasklet_run(struct plus_tasklet *task, bool remove_current)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyObject *result;

    if (sched == NULL) {
        return NULL;
    }
    if (task->sched != sched) {
        if (remove_current) {
            PyErr_SetString(PyExc_RuntimeError, "can't switch to a different thread.");
            return NULL;
        }
        return run_in_other_thread(task);
    }
    if (plus_refuse_in_callback(sched)) {
        return NULL;
    }
    struct plus_tasklet *prev = sched->running;
    bool inserted = task->next == NULL;

    if (plus_tasklet_insert(task) < 0) {
        return NULL;
    }
    if (remove_current && task != prev) {
        prev->parked_ns = plus_now_coarse_ns();
        plus_queue_remove(prev);
        sched->turn.after_switch = (PyObject *)prev;
    }
    if (plus_schedule(sched, prev, task, &result) < 0) {
        if (remove_current && task != prev) {
            sched->turn.after_switch = NULL;
            plus_queue_take_back(prev);
        }
        if (inserted && plus_is_runnable(task)) { /* code that ran may have removed the tasklet */
            plus_queue_remove(task);
            Py_DECREF(task);
        }
        return NULL;
    }
    return result;
}

static bool
is_exit(PyObject *bomb)
{
    PyObject *type = PyObject_GetAttrString(bomb, "type");
    int is = type != NULL && PyType_Check(type) ? PyObject_IsSubclass(type, plus_tasklet_exit) : 0;

    Py_XDECREF(type);
    if (is < 0 || type == NULL) {
        PyErr_Clear();
        is = 0;
    }
    return is != 0;
}

/* Makes the tasklet runnable with the bomb as its value. */
static PyObject *
throw_later(struct plus_tasklet *task)
{
    if (task->blocked) {
        plus_channel_remove(task);
        plus_queue_insert(task);
        plus_scheduler_wake(task->sched);
    }
    else if (plus_tasklet_insert(task) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *
plus_tasklet_throw(struct plus_tasklet *task, bool pending, PyObject *bomb)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyObject *result;

    if (sched == NULL) {
        Py_DECREF(bomb);
        return NULL;
    }
    if (sched->running == task) {
        return plus_bomb_explode(bomb);
    }
    if (task->sched->tstate == NULL || !task->alive || task->abandoned) {
        bool unfinished = task->sched->tstate == NULL && task->alive && task->started;
        bool harmless = !unfinished && is_exit(bomb);

        Py_DECREF(bomb);
        if (harmless) {
            Py_RETURN_NONE;
        }
        PyErr_SetString(PyExc_RuntimeError, task->sched->tstate == NULL
                                                ? "tasklet has no thread"
                                                : "You cannot throw to a dead tasklet");
        return NULL;
    }
    if (!pending && task->sched == sched && plus_refuse_in_callback(sched)) {
        Py_DECREF(bomb);
        return NULL;
    }
    PyObject *old = task->tempval;

    task->tempval = bomb;
    if (pending || task->sched != sched) {
        result = throw_later(task);
    }
    else if (plus_schedule(sched, sched->running, task, &result) < 0) {
        plus_set_value(task, old);
        return NULL;
    }
    Py_DECREF(old);
    return result;
}

void
plus_tasklet_abandon(struct plus_tasklet *task)
{
    task->sched->io.waiting -= task->awaits;
    task->awaits = false;
    if (task->blocked) {
        plus_channel_remove(task);
    }
    else if (task->next != NULL) {
        plus_queue_remove(task);
    }
    else {
        Py_INCREF(task);
    }
    task->abandoned = !task->is_main;
}

static void
unbind(struct plus_tasklet *task)
{
    struct bound bound = {.value = Py_NewRef(task->tempval),
                          .context = Py_XNewRef(task->fiber.state.context)};

    exchange(task, &bound);
    plus_tracing_drop(task);
    drop(&bound);
}

PyObject *
plus_tasklet_kill(struct plus_tasklet *task, bool pending)
{
    if (task->sched->tstate == NULL && !task->started) {
        unbind(task); /* another thread must not begin it, see tasklet_bind_thread() */
    }
    if (!task->alive || task->sched->tstate == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *bomb = plus_bomb_from_triple(plus_tasklet_exit, NULL, NULL);

    return bomb != NULL ? plus_tasklet_throw(task, pending, bomb) : NULL;
}
