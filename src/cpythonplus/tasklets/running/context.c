/* The context (contextvars) that a tasklet runs in: reading it, setting it, running code in it.
 *
 * The running tasklet's context is in the thread state; any other's is in its fiber, from which the switch loads it.
 * Each place has a reference of its own, and a switch moves it.  A tasklet gets a copy of the context of the code that
 * gives it its arguments, unless it was given one before (own_context).
 *
 * A tasklet's context is never *entered* in the sense of Context.run(), because several tasklets may have the same one.
 * It is put into the thread state directly.  A context that Context.run() has entered is not replaced: at its end
 * Context.run() would find another one than it has entered.
 *
 * A context may be set by the tasklet itself and by any code in its thread.  Another thread may set it only for a
 * tasklet that is in no queue, as the tasklet might run before it is set.
 *
 * context_run() exchanges the context around one call.  The call may switch: other tasklets load their own, and the
 * same tasklet undoes the exchange.
 *
 * Semantics and wording: Stackless Python 3.8, Stackless/module/taskletobject.c.
 */
#include "context.h"

/* Returns the tasklet's context from its present place. */
static PyObject *
context_of(const struct plus_tasklet *task)
{
    return plus_is_running(task) ? plus_pystate_context(task->sched->tstate)
                                 : task->fiber.state.context;
}

static PyObject *
refuse_other_thread(void)
{
    PyErr_SetString(PyExc_RuntimeError, "tasklet belongs to a different thread");
    return NULL;
}

PyObject *
plus_tasklet_context_id(PyObject *op, void *ignored)
{
    PyObject *context = context_of((struct plus_tasklet *)op);

    return context != NULL ? PyLong_FromVoidPtr(context) : Py_NewRef(Py_None);
}

/* Whether Context.run() has entered it.  The interpreter is asked, because the flag is private and its offset has
 * changed. */
static bool
is_entered(PyObject *context)
{
    if (PyContext_Enter(context) < 0) {
        PyErr_Clear();
        return true;
    }
    (void)PyContext_Exit(context);
    return false;
}

PyObject *
plus_tasklet_set_context(PyObject *op, PyObject *context)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;
    bool running = plus_is_running(task);
    PyObject *old = context_of(task);

    if (!PyContext_CheckExact(context)) {
        PyErr_Format(PyExc_TypeError,
                     "set_context() argument must be contextvars.Context, not %.100s",
                     Py_TYPE(context)->tp_name);
        return NULL;
    }
    if (task->sched != plus_scheduler_own && (running || !plus_is_floating(task))) {
        return refuse_other_thread();
    }
    if (old != NULL && is_entered(old)) {
        /* Context.run() must find at its end the context that it has entered, so that must not be replaced. */
        PyErr_SetString(PyExc_RuntimeError, "the current context of the tasklet has been entered");
        return NULL;
    }
    task->own_context = true;
    if (running) {
        old = plus_pystate_exchange_context(task->sched->tstate, Py_NewRef(context));
    }
    else {
        old = task->fiber.state.context;
        task->fiber.state.context = Py_NewRef(context);
    }
    Py_XDECREF(old);
    return Py_NewRef(op);
}

/* Returns the context for context_run(), made if there is none yet; a new reference. */
static PyObject *
context_to_run_in(struct plus_tasklet *task)
{
    if (plus_is_running(task) && task->sched != plus_scheduler_own) {
        return refuse_other_thread();
    }
    PyObject *context = context_of(task);

    if (context != NULL) {
        return Py_NewRef(context);
    }
    context = PyContext_New();
    if (context == NULL) {
        return NULL;
    }
    if (plus_is_running(task)) {
        Py_XDECREF(plus_pystate_exchange_context(task->sched->tstate, Py_NewRef(context)));
    }
    else {
        PyObject *old = task->fiber.state.context; /* other code may have set one meanwhile */

        task->own_context = true;
        task->fiber.state.context = Py_NewRef(context);
        Py_XDECREF(old);
    }
    return context;
}

PyObject *
plus_tasklet_context_run(PyObject *op, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyThreadState *tstate = PyThreadState_Get();

    if (sched == NULL) {
        return NULL;
    }
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "context_run() missing 1 required positional argument");
        return NULL;
    }
    PyObject *context = context_to_run_in((struct plus_tasklet *)op);

    if (context == NULL) {
        return NULL;
    }
    /* The call may switch; when it returns, this tasklet runs again, in this thread. */
    PyObject *old = plus_pystate_exchange_context(tstate, context);
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)count - 1, kwnames);
    PyObject *left = plus_pystate_exchange_context(tstate, old);

    Py_XDECREF(left);
    return result;
}
