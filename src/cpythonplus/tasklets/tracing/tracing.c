/* The trace and profile functions of tasklets that do not run: setting, inheriting and dropping them.
 *
 * From 3.12 on the interpreter counts how many threads trace, and instruments code while there are any; a parked
 * tasklet with a tracer counts as well.  Only the interpreter's own functions keep that count.  So the running tasklet
 * lends its place (change()):
 *
 *   1. The tasklet is warmed, as 3.11 keeps a flag on its C stack.
 *   2. Switches are refused in this thread: an audit hook in Python may run in step 4.
 *   3. The running tasklet's tracers and the other one's change places in the thread state.
 *   4. sys.settrace() or PyEval_SetTrace() is called.
 *   5. The tracers change places again, and only then is the old tracer released, so that its destructor finds
 *      everything in place.
 *
 * Step 4 changes which code reports which events.  Parked code is shown to the interpreter then (instrument.c).
 *
 * New tasklets inherit tracers when they are given their arguments.  A tasklet that ends drops its tracers while it
 * still runs (plus_pystate_end()).  plus_tracing_drop() takes them from a tasklet that never begins: the interpreter
 * would count them for ever.  That tasklet may be about to be freed, so no code on that way takes a reference to it.
 *
 * Rejected: writing into the interpreter's counters, whose offsets change with every version.
 */
#include "tracing.h"

#include "../../_base/methods.h"
#include "../core/cold.h"
#include "instrument.h"

#include "../../_base/raise.h"

enum plus_inheritance plus_inheritance = PLUS_OF_MAKER;

struct tracer {
    Py_tracefunc func; /* NULL: `object` is a Python callable for sys.settrace() */
    PyObject *object;  /* NULL: none */
};

/* Calls the C function behind sys.settrace or sys.setprofile.  A replacement that a program has put into the module is
 * not called: debuggers put functions there that log and warn. */
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

/* Installs a tracer for the running tasklet; NULL removes it, which only an audit hook can prevent, and that is
 * reported then.  Returns 0, or -1 with an exception (never for NULL). */
static int
install(bool profile, const struct tracer *tracer)
{
    PyThreadState *tstate = PyThreadState_Get();

    /* not through the sys module, which may be gone at the interpreter's end */
    if (tracer == NULL) {
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
                        "an audit hook forbids tracing"); /* its exception has been reported */
        return -1;
    }
    return 0;
}

/* Changes one of the tracers of a tasklet that does not run.  The caller releases *old (or NULL) once everything is in
 * its place again.  An audit hook in Python runs inside: it must not switch.  (If it releases the GIL, and the
 * tasklet's own thread runs the tasklet meanwhile, tracers are mixed up.) */
static int
change(struct plus_tasklet *task, bool profile, const struct tracer *tracer, PyObject **old)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct plus_scheduler *here = plus_scheduler_own;
    struct plus_pystate *state = &task->fiber.state;
    bool in_callback = here != NULL && here->in_callback;

    if (!task->started && !state->tracers_given) { /* leftovers of an earlier run */
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

/* Returns the function that was given to threading.settrace() or setprofile() for new threads, a new reference; NULL:
 * none. */
static PyObject *
for_new_threads(bool profile)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *threading = modules != NULL ? PyDict_GetItemString(modules, "threading") : NULL;
    PyObject *hook = NULL;

    if (threading != NULL) { /* not by its gettrace(), which would be traced */
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

        /* Code that ran here may have begun the tasklet, or cleared its function. */
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
    /* The tasklet may be about to be freed: no code here may take a reference to it. */
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
