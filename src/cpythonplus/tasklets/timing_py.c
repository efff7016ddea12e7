/* What io/timing.py and aio.py are made of: tasklets that begin later, exceptions that come from a timer, and
 * waiting for a coroutine. */
#include "binding.h"
#include "hub.h"

/* ---- timers ----------------------------------------------------------------------------------- */

static PyObject *
io_begin_after(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    struct plus_tasklet *task;
    double seconds;
    uint64_t deadline_ns;

    if (sched == NULL ||
        !PyArg_ParseTuple(args, "O!d:io_begin_after", &plus_tasklet_type, &task, &seconds)) {
        return NULL;
    }
    if (!task->alive || task->started || !plus_is_floating(task) || task->sched != sched) {
        PyErr_SetString(PyExc_RuntimeError, "only a tasklet that is in no queue can begin later");
        return NULL;
    }
    if (!plus_deadline_after(seconds, &deadline_ns) || plus_begin_at(task, deadline_ns) < 0) {
        return NULL;
    }
    Py_INCREF(task); /* the queue's */
    Py_RETURN_NONE;
}

/* Whether it is in no queue any more. */
static bool
take_out(struct plus_tasklet *task)
{
    if (!task->alive || task->started) {
        return false;
    }
    if (task->blocked) {
        plus_channel_remove(task);
    }
    else if (plus_is_runnable(task)) {
        plus_queue_remove(task);
    }
    else {
        return false;
    }
    Py_DECREF(task);
    return true;
}

static PyObject *
io_begin_never(PyObject *module, PyObject *arg)
{
    if (!PyObject_TypeCheck(arg, &plus_tasklet_type)) {
        PyErr_SetString(PyExc_TypeError, "a tasklet is needed");
        return NULL;
    }
    return PyBool_FromLong(take_out((struct plus_tasklet *)arg));
}

static PyObject *
io_interrupt(PyObject *module, PyObject *args)
{
    struct plus_tasklet *task;
    PyObject *exception;

    if (!PyArg_ParseTuple(args, "O!O:io_interrupt", &plus_tasklet_type, &task, &exception)) {
        return NULL;
    }
    if (!PyExceptionInstance_Check(exception)) {
        PyErr_SetString(PyExc_TypeError, "an exception is needed");
        return NULL;
    }
    if (!task->alive || task->due != NULL) {
        Py_RETURN_FALSE;
    }
    if (plus_is_runnable(task)) {
        task->due = Py_NewRef(exception);
        Py_RETURN_TRUE;
    }
    PyObject *bomb = plus_bomb_from_triple(exception, NULL, NULL);
    PyObject *result = bomb != NULL ? plus_tasklet_throw(task, true, bomb) : NULL;

    Py_XDECREF(result);
    return result != NULL ? Py_NewRef(Py_True) : NULL;
}

static PyObject *
io_not_due(PyObject *module, PyObject *exception)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched != NULL && sched->running->due == exception) {
        Py_CLEAR(sched->running->due);
    }
    return sched != NULL ? Py_NewRef(Py_None) : NULL;
}

/* ---- coroutines ------------------------------------------------------------------------------- */

static PyObject *
io_await(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    uint32_t generation = plus_fork_generation;
    bool woken;

    if (sched == NULL) {
        return NULL;
    }
    if (sched->askers == NULL) {
        sched->askers = plus_waiters_make("waiting for a coroutine");
    }
    if (sched->askers == NULL || plus_hub_ensure(sched) < 0) {
        return NULL;
    }
    plus_hub_ask(sched, 1);
    sched->hub_due = true; /* the loop has just been given something */
    enum plus_parked parked = plus_park(sched, sched->askers, PLUS_NO_DEADLINE, &woken);

    if (generation == plus_fork_generation) { /* the child of a fork begins with none */
        plus_hub_ask(sched, -1);
    }
    return parked != PLUS_PARKED_RAISED ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
io_awaited(PyObject *module, PyObject *arg)
{
    if (!PyObject_TypeCheck(arg, &plus_tasklet_type)) {
        PyErr_SetString(PyExc_TypeError, "a tasklet is needed");
        return NULL;
    }
    struct plus_tasklet *task = (struct plus_tasklet *)arg;

    if (task->blocked && task->channel == task->sched->askers) {
        plus_unpark(task);
    }
    Py_RETURN_NONE;
}

static PyObject *
io_own_hub(PyObject *module, PyObject *arg)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    bool is = PyObject_TypeCheck(arg, &plus_tasklet_type);

    if (sched == NULL) {
        return NULL;
    }
    sched->own_hub = is ? (struct plus_tasklet *)arg : NULL;
    Py_RETURN_NONE;
}

static PyObject *
io_loops(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyObject *loops = NULL;

    if (sched == NULL || !PyArg_ParseTuple(args, "|O:io_loops", &loops)) {
        return NULL;
    }
    if (loops != NULL) {
        Py_XSETREF(sched->loops, Py_NewRef(loops));
    }
    return Py_NewRef(sched->loops != NULL ? sched->loops : Py_None);
}

static PyObject *
io_running_loops(PyObject *module, PyObject *args)
{
    PyObject *get, *set_aside, *put_back;

    if (!PyArg_ParseTuple(args, "OOO:io_running_loops", &get, &set_aside, &put_back)) {
        return NULL;
    }
    plus_running_loops(get, set_aside, put_back);
    Py_RETURN_NONE;
}

PyMethodDef plus_timing_methods[] = {
    {"io_running_loops", io_running_loops, METH_VARARGS,
     PyDoc_STR("io_running_loops($module, get, set_aside, put_back, /)\n--\n\n"
               "Say by what the event loop that runs in the thread is set aside for a wait.")},
    {"io_begin_after", io_begin_after, METH_VARARGS,
     PyDoc_STR("io_begin_after($module, tasklet, seconds, /)\n--\n\n"
               "Have a tasklet that has its arguments begin after so long.")},
    {"io_begin_never", io_begin_never, METH_O,
     PyDoc_STR("io_begin_never($module, tasklet, /)\n--\n\n"
               "Take one that has not begun out of its queue; False: it has begun.")},
    {"io_interrupt", io_interrupt, METH_VARARGS,
     PyDoc_STR("io_interrupt($module, tasklet, exception, /)\n--\n\n"
               "Raise it where the tasklet waits, or is about to if it is runnable.\n\n"
               "False: it has ended, or another one is due first.")},
    {"io_not_due", io_not_due, METH_O,
     PyDoc_STR("io_not_due($module, exception, /)\n--\n\n"
               "Forget an exception that the running tasklet has not been interrupted by.")},
    {"io_await", io_await, METH_NOARGS,
     PyDoc_STR("io_await($module, /)\n--\n\nBlock the tasklet until io_awaited().")},
    {"io_awaited", io_awaited, METH_O,
     PyDoc_STR("io_awaited($module, tasklet, /)\n--\n\n"
               "End that wait, if the tasklet is in it.")},
    {"io_own_hub", io_own_hub, METH_O,
     PyDoc_STR("io_own_hub($module, tasklet_or_None, /)\n--\n\n"
               "Say which tasklet is no work of the program's.")},
    {"io_loops", io_loops, METH_VARARGS,
     PyDoc_STR("io_loops($module, new=<none>, /)\n--\n\n"
               "What the file io/hub.py keeps for the thread, as long as that has tasklets.")},
    {NULL, NULL, 0, NULL},
};
