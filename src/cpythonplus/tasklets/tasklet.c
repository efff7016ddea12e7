/* What can be done with a tasklet from outside of it.
 *
 * Semantics and wording: Stackless Python 3.x, Stackless/module/taskletobject.c.
 */
#include "tasklet.h"

#include "../_base/clock.h"
#include "bomb.h"
#include "lists.h"
#include "switching.h"
#include "tracing.h"

static int
refuse(const char *text)
{
    PyErr_SetString(PyExc_RuntimeError, text);
    return -1;
}

static bool
has_c_stack(const struct plus_tasklet *task)
{
    return plus_has_begun(task); /* also of a thread that has ended: the stack stays */
}

int
plus_tasklet_setup(struct plus_tasklet *task, PyObject *args, PyObject *kwargs, bool insert)
{
    const char *why = NULL;

    if (task->alive) {
        why = "tasklet is alive";
    }
    else if (plus_is_running(task)) { /* a callback at its end */
        why = "the current tasklet cannot begin again";
    }
    else if (task->tempval == Py_None) {
        why = "the tasklet was not bound to a function";
    }
    else if (task->sched->tstate == NULL) {
        why = "tasklet has no thread";
    }
    bool own_context = task->own_context && task->fiber.state.context != NULL;
    PyObject *context = own_context ? Py_NewRef(task->fiber.state.context) : NULL;

    if (why == NULL && !own_context && PyThreadState_Get()->context != NULL) {
        context = PyContext_CopyCurrent();
    }
    if (why != NULL || PyErr_Occurred()) {
        Py_DECREF(args);
        Py_XDECREF(kwargs);
        Py_XDECREF(context);
        return why != NULL ? refuse(why) : -1;
    }
    Py_XSETREF(task->fiber.state.context, context);
    task->func = plus_claim_value(task);
    task->args = args;
    task->kwargs = kwargs;
    task->alive = true;
    task->started = false;
    task->fiber.sp = NULL;
    plus_tracing_inherit(task);
    if (insert) {
        plus_queue_insert((struct plus_tasklet *)Py_NewRef(task));
        plus_scheduler_wake(task->sched);
    }
    return 0;
}

/* Takes what a tasklet that has not begun would call. */
static void
unbind(struct plus_tasklet *task)
{
    plus_tracing_drop(task);
    plus_vacated_forget(task);
    task->alive = task->started = false;
    Py_CLEAR(task->func);
    Py_CLEAR(task->args);
    Py_CLEAR(task->kwargs);
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
    if (plus_is_running(task)) {
        return refuse("can't (re)bind the current tasklet");
    }
    if (!plus_is_floating(task) || plus_is_coming(task)) {
        return refuse("tasklet is scheduled");
    }
    if (task->is_main && func == NULL) {
        return refuse("can't unbind the main tasklet");
    }
    if (has_c_stack(task)) {
        return refuse("tasklet has C state on its stack");
    }
    unbind(task);
    if (func != NULL) {
        task->own_context = false;
        Py_CLEAR(task->fiber.state.context);
    }
    if (args == NULL && kwargs == NULL) {
        plus_set_value(task, Py_NewRef(func != NULL ? func : Py_None));
        return 0;
    }
    PyObject *old = Py_NewRef(task->tempval);

    if (func != NULL) {
        plus_set_value(task, Py_NewRef(func));
    }
    args = args != NULL ? Py_NewRef(args) : PyTuple_New(0);
    if (args == NULL || plus_tasklet_setup(task, args, Py_XNewRef(kwargs), false) < 0) {
        plus_set_value(task, old);
        return -1;
    }
    Py_DECREF(old);
    return 0;
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
        /* It is to be the next one there.  (A thread that has been woken, but has not got the GIL yet, still rests.) */
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
        if (inserted) {
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

/* Makes it runnable with the bomb as its value. */
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

PyObject *
plus_tasklet_kill(struct plus_tasklet *task, bool pending)
{
    if (task->sched->tstate == NULL && !task->started) {
        unbind(task); /* another thread is not to begin it, see bind_thread() */
    }
    if (!task->alive || task->sched->tstate == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *bomb = plus_bomb_from_triple(plus_tasklet_exit, NULL, NULL);

    return bomb != NULL ? plus_tasklet_throw(task, pending, bomb) : NULL;
}
