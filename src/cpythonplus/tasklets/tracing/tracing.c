/* The trace and profile functions of tasklets that do not run: setting, inheriting and dropping them.
 *
 * The interpreter counts, from 3.12 on, how many threads trace, and instruments code while there are any; a
 * tasklet that has a tracer while it is parked counts as well.  Only the interpreter's own functions keep that
 * count.  So the running tasklet lends its place (change()):
 *
 *   1. the tasklet is warmed, as 3.11 keeps a flag on its C stack
 *   2. switches are refused in this thread: an audit hook in Python may run in step 4
 *   3. the running tasklet's tracers and the other one's change places in the thread state
 *   4. sys.settrace() or PyEval_SetTrace() is called
 *   5. they change places again, and only then is the old tracer let go: its destructor finds all as it was
 *
 * Step 4 changes which code reports what.  Code that is parked is shown to the interpreter then (instrument.c).
 *
 * New tasklets inherit when they are given their arguments.  One that ends drops its tracers while it still runs
 * (plus_pystate_end()).  One that has got some and never begins is relieved of them by plus_tracing_drop(): the
 * interpreter would count them for ever.  It may be about to be freed, so nothing on that way takes a reference to it.
 *
 * Rejected: writing into the interpreter's counters, whose place changes with every version.
 */
#include "tracing.h"

#include "../core/cold.h"
#include "../methods.h"
#include "instrument.h"

#include "../../_base/raise.h"

enum plus_inheritance plus_inheritance = PLUS_OF_MAKER;

struct tracer {
    Py_tracefunc func; /* NULL: `object` is a Python callable for sys.settrace() */
    PyObject *object;  /* NULL: none */
};

/* The C function behind sys.settrace and sys.setprofile.  What a program has put in their places in the module
 * is not called: debuggers put functions there that log and warn. */
static PyObject *
call_sys(bool profile, PyObject *value)
{
    PyObject *sys = PyImport_ImportModule("sys"), *result = NULL;
    PyModuleDef *def = sys != NULL ? PyModule_GetDef(sys) : NULL;
    const char *name = profile ? "setprofile" : "settrace";
    PyMethodDef *method = def != NULL ? plus_find_method(def->m_methods, name, METH_O) : NULL;

    if (method != NULL) {
        result = method->ml_meth(sys, value);
    }
    else if (sys != NULL) {
        PyErr_Format(PyExc_SystemError, "sys has no %s()", name);
    }
    Py_XDECREF(sys);
    return result;
}

/* As the running tasklet's; NULL: it has none any more, which only an audit hook can prevent, and that is reported
 * then.  0, or -1 with an exception but for NULL. */
static int
install(bool profile, const struct tracer *tracer)
{
    PyThreadState *tstate = PyThreadState_Get();

    if (tracer == NULL) { /* not by the module, which may be gone at the interpreter's end */
        (profile ? PyEval_SetProfile : PyEval_SetTrace)(NULL, NULL);
        return 0;
    }
    if (tracer->func == NULL) {
        PyObject *result = call_sys(profile, tracer->object != NULL ? tracer->object : Py_None);

        Py_XDECREF(result);
        return result != NULL ? 0 : -1;
    }
    (profile ? PyEval_SetProfile : PyEval_SetTrace)(tracer->func, tracer->object);
    if (plus_pystate_tracefunc(tstate, profile) != tracer->func) {
        PyErr_SetString(PyExc_RuntimeError,
                        "an audit hook forbids tracing"); /* it has been reported */
        return -1;
    }
    return 0;
}

/* Changes one of the tracers of a tasklet that does not run.  The old one, or NULL, is the caller's to let go, once all is
 * in its place again.  An audit hook in Python runs inside: it must not switch.  (If it lets the GIL go, and another
 * thread, whose tasklet this is, runs it meanwhile, tracers are mixed up.) */
static int
change(struct plus_tasklet *task, bool profile, const struct tracer *tracer, PyObject **old)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct plus_scheduler *here = plus_scheduler_own;
    struct plus_pystate *state = &task->fiber.state;
    bool in_callback = here != NULL && here->in_callback;

    if (!task->started && !state->tracers_given) { /* what its last life has left */
        state->tracefunc = state->profilefunc = NULL;
        state->traceobj = state->profileobj = NULL;
    }
    *old = Py_XNewRef(profile ? state->profileobj : state->traceobj);
    plus_tasklet_warm(task); /* 3.11 has a flag on its stack */
    if (here != NULL) {
        here->in_callback = true;
    }
    plus_pystate_swap_tracers(tstate, state);
    struct _PyInterpreterFrame *current = plus_pystate_hide_entries(tstate);
    int result = install(profile, tracer);

    *plus_pystate_current_frame(tstate) = current;
    plus_pystate_swap_tracers(tstate, state);
    plus_tasklet_warm(task); /* an audit hook or another thread may have trimmed stacks */
    plus_pystate_tracers_changed(state, task->started);
    if (task->started) {
        plus_instrument_if_changed(task->sched);
    }
    if (here != NULL) {
        here->in_callback = in_callback;
    }
    return result;
}

PyObject *
plus_tasklet_get_tracer(PyObject *op, void *profile)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;
    const PyThreadState *tstate = task->sched->tstate;
    PyObject *object = profile != NULL ? task->fiber.state.profileobj : task->fiber.state.traceobj;

    if (plus_is_running(task)) {
        object = plus_pystate_traceobj(tstate, profile != NULL);
    }
    return Py_NewRef(object != NULL ? object : Py_None);
}

int
plus_tasklet_set_tracer(PyObject *op, PyObject *value, void *profile)
{
    struct plus_tasklet *task = (struct plus_tasklet *)op;
    struct tracer tracer = {.object = value != Py_None ? value : NULL};

    if (plus_is_running(task)) {
        if (task->sched != plus_scheduler_own) {
            PyErr_Format(PyExc_RuntimeError,
                         "You cannot set the %s function of the current tasklet of another thread",
                         profile != NULL ? "profile" : "trace");
            return -1;
        }
        return install(profile != NULL, &tracer);
    }
    if (!task->alive || task->sched->tstate == NULL) {
        if (tracer.object == NULL) {
            return 0;
        }
        PyErr_SetString(PyExc_RuntimeError, "tasklet is not alive");
        return -1;
    }
    PyObject *old;
    int result = change(task, profile != NULL, &tracer, &old);

    Py_XDECREF(old);
    return result;
}

/* The function that threading.settrace() or setprofile() has been given for new threads; NULL: none.  A new
 * reference. */
static PyObject *
for_new_threads(bool profile)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *threading = modules != NULL ? PyDict_GetItemString(modules, "threading") : NULL;
    PyObject *hook = NULL;

    if (threading != NULL) { /* its gettrace() would be traced */
        Py_INCREF(threading);
        hook = PyObject_GetAttrString(threading, profile ? "_profile_hook" : "_trace_hook");
        if (hook == NULL) {
            PyErr_Clear();
        }
        else if (hook == Py_None) {
            Py_CLEAR(hook);
        }
        Py_DECREF(threading);
    }
    return hook;
}

void
plus_tracing_inherit(struct plus_tasklet *task)
{
    PyThreadState *tstate = PyThreadState_Get();
    bool traced = plus_pystate_tracefunc(tstate, false) != NULL ||
                  plus_pystate_tracefunc(tstate, true) != NULL;

    if (plus_inheritance == PLUS_NEVER || (plus_inheritance == PLUS_OF_MAKER && !traced)) {
        return;
    }
    for (int profile = 0; profile <= 1; profile++) {
        PyObject *hook = for_new_threads(profile), *old = NULL;
        struct tracer tracer = {hook == NULL ? plus_pystate_tracefunc(tstate, profile) : NULL,
                                hook != NULL ? hook
                                             : Py_XNewRef(plus_pystate_traceobj(tstate, profile))};

        /* Code that ran here may have let it begin, or let go what it was to call. */
        if ((tracer.func != NULL || tracer.object != NULL) && task->alive &&
            !plus_has_begun(task) && !plus_is_running(task) &&
            change(task, profile, &tracer, &old) < 0) {
            PyErr_WriteUnraisable((PyObject *)task);
        }
        Py_XDECREF(tracer.object);
        Py_XDECREF(old);
    }
}

void
plus_tracing_drop(struct plus_tasklet *task)
{
    if (!task->fiber.state.tracers_given) {
        return;
    }
    /* The tasklet may be on its way to be freed: nothing may take a reference to it. */
    struct plus_raised raised = plus_raised_take();
    PyObject *old[2];

    for (int profile = 0; profile <= 1; profile++) {
        (void)change(task, profile, NULL, &old[profile]);
    }
    task->fiber.state.tracers_given = false;
    Py_XDECREF(old[0]);
    Py_XDECREF(old[1]);
    plus_raised_put(raised);
}
