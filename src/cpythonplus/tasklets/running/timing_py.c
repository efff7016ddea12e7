/* The C functions for io/_timing.py and aio.py: tasklets that begin later, exceptions from timers, and waiting for a
 * coroutine. */
#include "binding.h"

#include "../../_base/methods.h"
#include "../core/bomb.h"
#include "../core/lists.h"
#include "../scheduling/loop.h"
#include "../scheduling/parking.h"
#include "tasklet.h"
#include "tasklet_py.h"

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
    if (!task->alive || plus_has_begun(task) || !plus_is_floating(task) || task->sched != sched) {
        PyErr_SetString(PyExc_RuntimeError,
                        "only a tasklet that is in no queue can be started later");
        return NULL;
    }
    if (!plus_deadline_after(seconds, &deadline_ns) || plus_begin_at(task, deadline_ns) < 0) {
        return NULL;
    }
    Py_INCREF(task); /* the queue's reference */
    Py_RETURN_NONE;
}

/* Takes a tasklet that has not begun out of the queue of a channel or of runnable tasklets. Returns whether the tasklet
 * was in one. */
static bool
take_out(struct plus_tasklet *task)
{
    if (!task->alive || plus_has_begun(task)) {
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
    struct plus_tasklet *task;

    return PyArg_Parse(arg, "O!", &plus_tasklet_type, &task) ? PyBool_FromLong(take_out(task))
                                                             : NULL;
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
        PyErr_SetString(PyExc_TypeError, "expected an exception");
        return NULL;
    }
    PyObject *bomb = plus_bomb_from_triple(exception, NULL, NULL);

    /* Finalisers and other threads may have run meanwhile, and given the tasklet something. */
    if (bomb == NULL || !task->alive || task->due != NULL) {
        Py_XDECREF(bomb);
        return bomb != NULL ? Py_NewRef(Py_False) : NULL;
    }
    if (plus_is_runnable(task)) {
        task->due = Py_NewRef(exception);
        Py_DECREF(bomb);
        Py_RETURN_TRUE;
    }
    PyObject *result = plus_tasklet_throw(task, true, bomb);

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

    if (sched == NULL) {
        return NULL;
    }
    if (sched->loop.askers == NULL) {
        sched->loop.askers = plus_waiters_make("waiting for a coroutine");
    }
    if (sched->loop.askers == NULL || plus_loop_ensure(sched) < 0) {
        return NULL;
    }
    plus_loop_ask(sched, 1);
    sched->loop.due = true; /* the loop has just been given a coroutine */
    enum plus_parked parked = plus_park(sched, sched->loop.askers, PLUS_NO_DEADLINE, false, NULL);

    if (generation == plus_fork_generation) { /* the child of a fork counts from 0 */
        plus_loop_ask(sched, -1);
    }
    return parked != PLUS_PARKED_RAISED ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
io_awaited(PyObject *module, PyObject *arg)
{
    struct plus_tasklet *task;

    if (!PyArg_Parse(arg, "O!", &plus_tasklet_type, &task)) {
        return NULL;
    }
    if (task->blocked && task->channel == task->sched->loop.askers) {
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
    if (is) {
        Py_XSETREF(sched->loop.own_hub, (struct plus_tasklet *)Py_NewRef(arg));
    }
    else if (sched->loop.own_hub == sched->running) { /* another hub may have replaced it */
        Py_CLEAR(sched->loop.own_hub);
    }
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
    if (sched->loop.loops == NULL) { /* a signal handler may have set it meanwhile */
        sched->loop.loops = Py_XNewRef(loops);
    }
    return Py_NewRef(sched->loop.loops != NULL ? sched->loop.loops : Py_None);
}

static PyObject *
io_running_loops(PyObject *module, PyObject *args)
{
    PyObject *functions[5];

    if (!PyArg_ParseTuple(args, "OOOOO:io_running_loops", &functions[0], &functions[1],
                          &functions[2], &functions[3], &functions[4])) {
        return NULL;
    }
    plus_running_loops(functions);
    Py_RETURN_NONE;
}

#define METHOD(name, ...) PLUS_METHOD(#name, name, __VA_ARGS__)

PyMethodDef plus_timing_methods[] = {
    METHOD(io_running_loops, METH_VARARGS,
           "$module, get_loop, set_loop, get_hooks, set_hooks, swap_task, /",
           "Say by what the event loop that runs in the thread is set aside for a wait."),
    METHOD(io_begin_after, METH_VARARGS, "$module, tasklet, seconds, /",
           "Have a tasklet that has its arguments begin after so long."),
    METHOD(io_begin_never, METH_O, "$module, tasklet, /",
           "Take one that has not begun out of its queue; False: it has begun."),
    METHOD(io_interrupt, METH_VARARGS, "$module, tasklet, exception, /",
           "Raise it where the tasklet waits, or is about to if it is runnable.\n\n"
           "False: it has ended, or another one is due first."),
    METHOD(io_not_due, METH_O, "$module, exception, /",
           "Forget an exception that the running tasklet has not been interrupted by."),
    METHOD(io_await, METH_NOARGS, "$module, /", "Block the tasklet until io_awaited()."),
    METHOD(io_awaited, METH_O, "$module, tasklet, /", "End that wait, if the tasklet is in it."),
    METHOD(io_own_hub, METH_O, "$module, tasklet_or_None, /",
           "Say which tasklet is no work of the program's."),
    METHOD(io_loops, METH_VARARGS, "$module, new=<none>, /",
           "What the file io/hub.py keeps for the thread, as long as that has tasklets."),
    {NULL, NULL, 0, NULL},
};
