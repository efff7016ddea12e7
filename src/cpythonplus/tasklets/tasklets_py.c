/* The room's functions of the extension module, and the context manager `atomic`. */
#include "binding.h"
#include "deadline.h"
#include "dump_signal.h"
#include "hub.h"
#include "interrupts.h"
#include "locks.h"
#include "own_state.h"
#include "report.h"
#include "scheduler.h"

#include "../_base/clock.h"

#define KEYWORDS(f) ((PyCFunction)(void (*)(void))(f)), METH_VARARGS | METH_KEYWORDS

/* ---- scheduling ------------------------------------------------------------------------------- */

static PyObject *
schedule_with(PyObject *const *args, Py_ssize_t count, PyObject *kwnames, bool remove,
              const char *name)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    Py_ssize_t keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;

    if (sched == NULL) {
        return NULL;
    }
    if (count + keywords > 1) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument (%zd given)", name,
                     count + keywords);
        return NULL;
    }
    if (keywords == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "retval") != 0) {
        PyErr_Format(PyExc_TypeError, "'%U' is an invalid keyword argument for %s()",
                     PyTuple_GET_ITEM(kwnames, 0), name);
        return NULL;
    }
    return plus_schedule_current(
        sched, count + keywords == 1 ? args[0] : (PyObject *)sched->running, remove);
}

static PyObject *
tasklets_schedule(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return schedule_with(args, count, kwnames, false, "schedule");
}

static PyObject *
tasklets_schedule_remove(PyObject *module, PyObject *const *args, Py_ssize_t count,
                         PyObject *kwnames)
{
    return schedule_with(args, count, kwnames, true, "schedule_remove");
}

static PyObject *
tasklets_run(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"timeout",        "threadblock",  "soft",
                            "ignore_nesting", "totaltimeout", NULL};
    struct plus_scheduler *sched = plus_scheduler_get();
    long timeout = 0;
    int threadblock = 0, soft = 0, ignore_nesting = 0, totaltimeout = 0;

    if (sched == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|lpppp:run", names, &timeout, &threadblock,
                                     &soft, &ignore_nesting, &totaltimeout)) {
        return NULL;
    }
    struct plus_watch_options options = {
        .timeout = timeout,
        .seconds = -1,
        .threadblock = threadblock != 0,
        .soft = soft != 0,
        .ignore_nesting = ignore_nesting != 0,
        .total = totaltimeout != 0,
    };

    return plus_watchdog_run(sched, &options);
}

static PyObject *
tasklets_run_for(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seconds", "threadblock", "soft", "ignore_nesting", NULL};
    struct plus_scheduler *sched = plus_scheduler_get();
    double seconds;
    int threadblock = 0, soft = 0, ignore_nesting = 0;

    if (sched == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "d|$ppp:run_for", names, &seconds, &threadblock,
                                     &soft, &ignore_nesting)) {
        return NULL;
    }
    if (!(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "seconds must be a non-negative number");
        return NULL;
    }
    struct plus_watch_options options = {
        .seconds = seconds,
        .threadblock = threadblock != 0,
        .soft = soft != 0,
        .ignore_nesting = ignore_nesting != 0,
    };

    return plus_watchdog_run(sched, &options);
}

/* ---- looking ---------------------------------------------------------------------------------- */

static PyObject *
tasklets_getcurrent(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    return sched != NULL ? Py_NewRef(sched->running) : NULL;
}

static PyObject *
tasklets_getmain(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    return sched != NULL ? Py_NewRef(sched->main) : NULL;
}

static PyObject *
tasklets_getruncount(PyObject *module, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    /* A hub of ours has no work but the others'. */
    bool hub = sched != NULL && sched->own_hub != NULL && sched->own_hub != sched->running &&
               plus_is_runnable(sched->own_hub);

    return sched != NULL ? PyLong_FromLong(sched->runcount - hub) : NULL;
}

/* No scheduler is made for who asks: an import may, in any thread at any time. */
static PyObject *
tasklets_get_ident(PyObject *module, PyObject *ignored)
{
    const struct plus_scheduler *sched = plus_scheduler_own;

    return sched == NULL || sched->running == sched->main
               ? PyLong_FromUnsignedLong(PyThread_get_thread_ident())
               : PyLong_FromVoidPtr(sched->running);
}

static PyObject *
tasklets_getcurrentid(PyObject *module, PyObject *ignored)
{
    return plus_scheduler_get() != NULL ? tasklets_get_ident(module, NULL) : NULL;
}

/* For the child of a fork: what a thread of the parent's was does not go on. */
static PyObject *
tasklets_abandon(PyObject *module, PyObject *arg)
{
    struct plus_tasklet *task = (struct plus_tasklet *)arg;

    if (!PyObject_TypeCheck(arg, &plus_tasklet_type)) {
        PyErr_SetString(PyExc_TypeError, "a tasklet is needed");
        return NULL;
    }
    if (task->sched != plus_scheduler_own || plus_is_running(task)) {
        PyErr_SetString(PyExc_RuntimeError, "this tasklet cannot be left behind");
        return NULL;
    }
    plus_tasklet_abandon(task);
    task->alive = task->is_main;
    Py_RETURN_NONE;
}

static PyObject *
tasklets_get_thread_info(PyObject *module, PyObject *args)
{
    long ident = 0;
    struct plus_scheduler *sched;

    if (!PyArg_ParseTuple(args, "|l:get_thread_info", &ident)) {
        return NULL;
    }
    sched = ident == 0 ? plus_scheduler_get() : plus_scheduler_of_thread((unsigned long)ident);
    if (sched == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "Thread id not found");
        }
        return NULL;
    }
    struct plus_tasklet *current = sched == plus_scheduler_own ? sched->running : sched->current;

    return Py_BuildValue("(OOi)", sched->main, current != NULL ? (PyObject *)current : Py_None,
                         sched->runcount);
}

static PyObject *
tasklets_getthreads(PyObject *module, PyObject *ignored)
{
    PyObject *list = PyList_New(0);

    if (plus_scheduler_get() == NULL) {
        Py_CLEAR(list);
    }
    for (struct plus_scheduler *sched = plus_schedulers; list != NULL && sched != NULL;
         sched = sched->next_scheduler) {
        PyObject *ident = PyLong_FromUnsignedLong(sched->tstate->thread_id);

        if (ident == NULL || PyList_Append(list, ident) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(ident);
    }
    return list;
}

/* ---- callbacks -------------------------------------------------------------------------------- */

/* Puts a callable or None into *slot; gives what was there. */
static PyObject *
exchange(PyObject **slot, PyObject *callable, const char *refusal)
{
    PyObject *old = *slot;

    if (callable != Py_None && !PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, refusal);
        return NULL;
    }
    *slot = callable != Py_None ? Py_NewRef(callable) : NULL;
    return old != NULL ? old : Py_NewRef(Py_None);
}

static PyObject *
tasklets_set_channel_callback(PyObject *module, PyObject *callable)
{
    return exchange(&plus_channel_hook, callable, "channel callback must be callable");
}

static PyObject *
tasklets_get_channel_callback(PyObject *module, PyObject *ignored)
{
    return Py_NewRef(plus_channel_hook != NULL ? plus_channel_hook : Py_None);
}

static PyObject *
tasklets_set_schedule_callback(PyObject *module, PyObject *callable)
{
    return exchange(&plus_schedule_hook, callable, "schedule callback must be callable");
}

static PyObject *
tasklets_get_schedule_callback(PyObject *module, PyObject *ignored)
{
    return Py_NewRef(plus_schedule_hook != NULL ? plus_schedule_hook : Py_None);
}

static PyObject *
tasklets_set_error_handler(PyObject *module, PyObject *args)
{
    PyObject *callable = Py_None;

    if (!PyArg_ParseTuple(args, "|O:set_error_handler", &callable)) {
        return NULL;
    }
    return exchange(&plus_error_handler, callable, "error handler must be callable");
}

static PyObject *
tasklets_switch_trap(PyObject *module, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    int change = 0;

    if (sched == NULL || !PyArg_ParseTuple(args, "|i:switch_trap", &change)) {
        return NULL;
    }
    int old = sched->switch_trap;

    sched->switch_trap += change;
    return PyLong_FromLong(old);
}

/* Puts a truth value into *slot; gives what was there. */
static PyObject *
exchange_flag(bool *slot, PyObject *flag)
{
    bool old = *slot;
    int value = PyObject_IsTrue(flag);

    if (value < 0) {
        return NULL;
    }
    *slot = value != 0;
    return PyBool_FromLong(old);
}

static PyObject *
tasklets_set_foreign_wakers(PyObject *module, PyObject *flag)
{
    return exchange_flag(&plus_foreign_wakers, flag);
}

static PyObject *
tasklets_set_trace_inheritance(PyObject *module, PyObject *flag)
{
    PyObject *old = plus_inheritance == PLUS_OF_MAKER
                        ? Py_NewRef(Py_None)
                        : PyBool_FromLong(plus_inheritance == PLUS_ALSO_OF_THREADS);
    int value = PyObject_IsTrue(flag);

    if (value < 0) {
        Py_DECREF(old);
        return NULL;
    }
    plus_inheritance = flag == Py_None ? PLUS_OF_MAKER : value ? PLUS_ALSO_OF_THREADS : PLUS_NEVER;
    return old;
}

/* ---- stacks ----------------------------------------------------------------------------------- */

/* To compile takes 3.14's JIT 123 KiB; where there is little left 3.15's crashes when it drops compiled code. */
#define LEAST_BYTES_WITH_JIT ((size_t)256 << 10)

static PyObject *
tasklets_stack_size(PyObject *module, PyObject *args)
{
    Py_ssize_t bytes = -1;
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched == NULL || !PyArg_ParseTuple(args, "|n:stack_size", &bytes)) {
        return NULL;
    }
    size_t old = sched->stacks.stack_bytes;

    if (PyTuple_GET_SIZE(args) == 1) {
        size_t wanted = bytes == 0 ? plus_default_stack_bytes() : (size_t)bytes;
        int jit = plus_compat_has_jit();
        size_t least = jit > 0 ? LEAST_BYTES_WITH_JIT : PLUS_STACK_BYTES_MIN;

        if (jit < 0) {
            return NULL;
        }
        if (bytes < 0 || wanted < least || wanted > PLUS_STACK_BYTES_MAX) {
            PyErr_Format(PyExc_ValueError,
                         "stack size must be 0 or between %zu and %zu bytes%s, not %zd", least,
                         PLUS_STACK_BYTES_MAX, jit > 0 ? " (the JIT is on)" : "", bytes);
            return NULL;
        }
        plus_new_stack_bytes = (size_t)bytes;
        plus_stacks_resize(&sched->stacks, wanted);
    }
    return PyLong_FromSize_t(old);
}

static PyObject *
tasklets_trim_stacks(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parked_s", NULL};
    double parked_s = 0;
    size_t cooled = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|d:trim_stacks", names, &parked_s)) {
        return NULL;
    }
    if (!(parked_s >= 0 && parked_s <= 1e9)) {
        PyErr_SetString(PyExc_ValueError, "parked_s must be between 0 and 1e9 seconds");
        return NULL;
    }
    for (struct plus_scheduler *sched = plus_schedulers; sched != NULL;
         sched = sched->next_scheduler) {
        cooled += plus_scheduler_trim(sched, (uint64_t)(parked_s * PLUS_NS_PER_S));
    }
    return PyLong_FromSize_t(cooled);
}

static PyObject *
tasklets_kill_all(PyObject *module, PyObject *ignored)
{
    plus_schedulers_end();
    Py_RETURN_NONE;
}

static PyObject *
tasklets_after_fork(PyObject *module, PyObject *ignored)
{
    plus_deadline_after_fork();
    if (plus_scheduler_own != NULL) {
        plus_hub_after_fork(plus_scheduler_own);
        plus_task_locks_after_fork(plus_scheduler_own);
    }
    Py_RETURN_NONE;
}

static PyObject *
tasklets_event_changes(PyObject *module, PyObject *args)
{
    unsigned long pretended = 0;

    if (!PyArg_ParseTuple(args, "|k:tasklets_event_changes", &pretended)) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(plus_interrupts_changes(pretended));
}

static PyObject *
tasklets_stop_deadlines(PyObject *module, PyObject *ignored)
{
    plus_deadline_stop();
    Py_RETURN_NONE;
}

static PyObject *
tasklets_refusal(PyObject *module, PyObject *ignored)
{
    const char *refusal = plus_pystate_refusal();

    if (refusal == NULL) {
        refusal = plus_pystate_start();
    }
    return refusal != NULL ? PyUnicode_FromString(refusal) : Py_NewRef(Py_None);
}

/* ---- dumps ------------------------------------------------------------------------------------ */

static PyObject *
tasklets_report_raw(PyObject *module, PyObject *args)
{
    int which;
    Py_ssize_t most_alike;

    if (!PyArg_ParseTuple(args, "in:tasklets_report_raw", &which, &most_alike)) {
        return NULL;
    }
    return plus_report_make((enum plus_report_threads)which, most_alike);
}

static PyObject *
tasklets_dump_on(PyObject *module, PyObject *args)
{
    int signum;
    PyObject *call;

    if (!PyArg_ParseTuple(args, "iO:tasklets_dump_on", &signum, &call) ||
        plus_dump_signal_on(signum, call) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
tasklets_dump_off(PyObject *module, PyObject *args)
{
    int signum;

    if (!PyArg_ParseTuple(args, "i:tasklets_dump_off", &signum)) {
        return NULL;
    }
    return PyBool_FromLong(plus_dump_signal_off(signum));
}

static PyObject *
tasklets_dump_pause(PyObject *module, PyObject *ignored)
{
    plus_dump_signal_pause();
    Py_RETURN_NONE;
}

static PyObject *
tasklets_dump_resume(PyObject *module, PyObject *ignored)
{
    if (plus_dump_signal_resume(false) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
tasklets_dump_resume_child(PyObject *module, PyObject *ignored)
{
    if (plus_dump_signal_resume(true) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- atomic ----------------------------------------------------------------------------------- */

struct atomic {
    PyObject_HEAD bool old;
};

static PyObject *
atomic_enter(PyObject *op, PyObject *ignored)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched == NULL) {
        return NULL;
    }
    ((struct atomic *)op)->old = sched->running->atomic;
    sched->running->atomic = true;
    plus_follow_atomic(sched);
    Py_RETURN_NONE;
}

static PyObject *
atomic_exit(PyObject *op, PyObject *args)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched == NULL) {
        return NULL;
    }
    sched->running->atomic = ((struct atomic *)op)->old;
    plus_follow_atomic(sched);
    Py_RETURN_NONE;
}

/* Not PyType_GenericNew, which takes anything: as a decorator it would silently replace the function. */
static PyObject *
atomic_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) != 0 || (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0)) {
        PyErr_SetString(PyExc_TypeError, "atomic() takes no arguments");
        return NULL;
    }
    return type->tp_alloc(type, 0);
}

static PyMethodDef atomic_methods[] = {
    {"__enter__", atomic_enter, METH_NOARGS, NULL},
    {"__exit__", atomic_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject atomic_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.atomic",
    .tp_basicsize = sizeof(struct atomic),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        PyDoc_STR("atomic()\n--\n\n"
                  "Context manager: inside, no watchdog interrupts the current tasklet, and its "
                  "thread\nkeeps the GIL."),
    .tp_new = atomic_new,
    .tp_methods = atomic_methods,
};

/* ---- tables ----------------------------------------------------------------------------------- */

static PyMethodDef refusal_method[] = {
    {"tasklets_refusal", tasklets_refusal, METH_NOARGS,
     PyDoc_STR("tasklets_refusal($module, /)\n--\n\nWhy there are no tasklets here, or None.")},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef tasklets_methods[] = {
    {"tasklets_kill_all", tasklets_kill_all, METH_NOARGS,
     PyDoc_STR("tasklets_kill_all($module, /)\n--\n\n"
               "End this thread's tasklets that have begun, as at the thread's end.")},
    {"tasklets_after_fork", tasklets_after_fork, METH_NOARGS,
     PyDoc_STR("tasklets_after_fork($module, /)\n--\n\nFor the child of a fork.")},
    {"tasklets_event_changes", tasklets_event_changes, METH_VARARGS,
     PyDoc_STR(
         "tasklets_event_changes($module, pretended=0, /)\n--\n\n"
         "How often run(timeout) has switched events on or off; for tests: so many times more.")},
    {"tasklets_stop_deadlines", tasklets_stop_deadlines, METH_NOARGS,
     PyDoc_STR("tasklets_stop_deadlines($module, /)\n--\n\n"
               "Let run_for() interrupt nothing any more, as the interpreter ends.")},
    {"getthreads", tasklets_getthreads, METH_NOARGS,
     PyDoc_STR("getthreads($module, /)\n--\n\n"
               "Identities of the threads that have used tasklets.")},
    {"schedule", (PyCFunction)(void (*)(void))tasklets_schedule, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "schedule($module, /, retval=...)\n--\n\n"
         "Let the next runnable tasklet run; return retval when it is this one's turn again.\n\n"
         "retval: by default the current tasklet.")},
    {"schedule_remove", (PyCFunction)(void (*)(void))tasklets_schedule_remove,
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("schedule_remove($module, /, retval=...)\n--\n\n"
               "The same, and take the current tasklet out of the queue.")},
    {"run", KEYWORDS(tasklets_run),
     PyDoc_STR("run($module, /, timeout=0, threadblock=False, soft=False, ignore_nesting=False,\n"
               "    totaltimeout=False)\n--\n\n"
               "Run all tasklets until none is runnable, or until the time-out; return None.\n\n"
               "timeout: events (calls of Python functions, resumptions of generators, jumps\n"
               "back); 0: none.  The tasklet that has run for so long is interrupted, taken out\n"
               "of the queue and returned; insert() lets it go on.\n"
               "threadblock: wait for other threads when nothing is runnable.\n"
               "soft: interrupt nobody; return None at the next switch after the time-out.\n"
               "ignore_nesting: interrupt Python code that C code has called, too.\n"
               "totaltimeout: count all tasklets together, not each for itself.\n\n"
               "An exception that leaves a tasklet is raised here.  RuntimeError if no tool of\n"
               "sys.monitoring is free (3.12 and later).")},
    {"run_for", KEYWORDS(tasklets_run_for),
     PyDoc_STR("run_for($module, /, seconds, *, threadblock=False, soft=False,\n"
               "    ignore_nesting=False)\n--\n\n"
               "The same with a time-out in seconds, for all tasklets together.\n\n"
               "Nothing is slower before it has passed.  ValueError for a negative number.")},
    {"getcurrent", tasklets_getcurrent, METH_NOARGS,
     PyDoc_STR("getcurrent($module, /)\n--\n\nThe tasklet that runs.")},
    {"getmain", tasklets_getmain, METH_NOARGS,
     PyDoc_STR("getmain($module, /)\n--\n\nThe first tasklet of this thread.")},
    {"getruncount", tasklets_getruncount, METH_NOARGS,
     PyDoc_STR("getruncount($module, /)\n--\n\nHow many tasklets of this thread are runnable.")},
    {"tasklets_get_ident", tasklets_get_ident, METH_NOARGS,
     PyDoc_STR("tasklets_get_ident($module, /)\n--\n\n"
               "A number that no other tasklet and no other thread has now.")},
    {"tasklets_abandon", tasklets_abandon, METH_O,
     PyDoc_STR("tasklets_abandon($module, tasklet, /)\n--\n\n"
               "Have one never go on, nor end: what a fork makes of other threads.")},
    {"getcurrentid", tasklets_getcurrentid, METH_NOARGS,
     PyDoc_STR("getcurrentid($module, /)\n--\n\n"
               "A number for the tasklet that runs; main's is that of its thread.")},
    {"get_thread_info", tasklets_get_thread_info, METH_VARARGS,
     PyDoc_STR("get_thread_info($module, thread_id=0, /)\n--\n\n"
               "(main tasklet, current tasklet, number of runnables) of a thread.\n\n"
               "RuntimeError if that thread has no tasklets.")},
    {"set_channel_callback", tasklets_set_channel_callback, METH_O,
     PyDoc_STR("set_channel_callback($module, callable, /)\n--\n\n"
               "Call callable(channel, tasklet, sending, willblock) before each action; None: no "
               "more.\n\n"
               "Returns the previous one.")},
    {"get_channel_callback", tasklets_get_channel_callback, METH_NOARGS,
     PyDoc_STR("get_channel_callback($module, /)\n--\n\nThe callable, or None.")},
    {"set_schedule_callback", tasklets_set_schedule_callback, METH_O,
     PyDoc_STR("set_schedule_callback($module, callable, /)\n--\n\n"
               "Call callable(previous, next) before each switch; None: no more.\n\n"
               "Returns the previous one.")},
    {"get_schedule_callback", tasklets_get_schedule_callback, METH_NOARGS,
     PyDoc_STR("get_schedule_callback($module, /)\n--\n\nThe callable, or None.")},
    {"set_error_handler", tasklets_set_error_handler, METH_VARARGS,
     PyDoc_STR(
         "set_error_handler($module, callable=None, /)\n--\n\n"
         "Call callable(type, value, traceback) for what leaves a tasklet, instead of raising it\n"
         "in main; None: raise it there.  Returns the previous one.")},
    {"set_foreign_wakers", tasklets_set_foreign_wakers, METH_O,
     PyDoc_STR("set_foreign_wakers($module, flag, /)\n--\n\n"
               "Whether a thread that has never used tasklets counts as one that may wake a "
               "blocked one.\n\n"
               "True (default, as in Stackless): beside such a thread nothing is a deadlock, "
               "blocking waits.\n"
               "False: for programs whose other threads only help.  Returns what it was.")},
    {"set_trace_inheritance", tasklets_set_trace_inheritance, METH_O,
     PyDoc_STR(
         "set_trace_inheritance($module, flag, /)\n--\n\n"
         "Whether new tasklets have trace and profile functions: those that threading.settrace() "
         "and\n"
         "setprofile() have for new threads, or else those of who gives them their arguments.\n\n"
         "None (default): where who gives them their arguments has any; False: never; True: always."
         "\nReturns what it was.")},
    {"switch_trap", tasklets_switch_trap, METH_VARARGS,
     PyDoc_STR(
         "switch_trap($module, change=0, /)\n--\n\n"
         "Change the level above 0 of which switching raises RuntimeError; return the old one.")},
    {"stack_size", tasklets_stack_size, METH_VARARGS,
     PyDoc_STR(
         "stack_size($module, size_bytes=..., /)\n--\n\n"
         "Size of the C stacks of tasklets that begin from now on, in bytes; 0: the default.\n\n"
         "Without an argument nothing is changed.  Returns the old size.  ValueError outside of 64 "
         "KiB to 1 GiB.")},
    {"trim_stacks", KEYWORDS(tasklets_trim_stacks),
     PyDoc_STR(
         "trim_stacks($module, /, parked_s=0.0)\n--\n\n"
         "Let tasklets that have been blocked or paused for so many seconds keep only what is in "
         "use of\ntheir stacks.\n\n"
         "Those of all threads; returns how many it has done that to.  They get their stacks "
         "back when they\nrun again.  ValueError if negative.")},
    {"tasklets_report_raw", tasklets_report_raw, METH_VARARGS,
     PyDoc_STR("tasklets_report_raw($module, which, most_alike, /)\n--\n\n"
               "What cpythonplus.tasklets._reporting makes reports of; which threads: 0 this one, "
               "1 all,\n"
               "2 the others.")},
    {"tasklets_dump_on", tasklets_dump_on, METH_VARARGS,
     PyDoc_STR("tasklets_dump_on($module, signum, call, /)\n--\n\n"
               "Have call(signum) called on the signal, by a thread of its own.")},
    {"tasklets_dump_off", tasklets_dump_off, METH_VARARGS,
     PyDoc_STR("tasklets_dump_off($module, signum, /)\n--\n\n"
               "Put the previous handler back; return whether there was anything to undo.")},
    {"tasklets_dump_pause", tasklets_dump_pause, METH_NOARGS,
     PyDoc_STR("tasklets_dump_pause($module, /)\n--\n\nEnd that thread: before a fork, at exit.")},
    {"tasklets_dump_resume", tasklets_dump_resume, METH_NOARGS,
     PyDoc_STR("tasklets_dump_resume($module, /)\n--\n\nStart it again: after a fork.")},
    {"tasklets_dump_resume_child", tasklets_dump_resume_child, METH_NOARGS,
     PyDoc_STR("tasklets_dump_resume_child($module, /)\n--\n\n"
               "The same in the child, where the parent's signals are forgotten.")},
    {NULL, NULL, 0, NULL},
};

int
plus_tasklets_exec(PyObject *module)
{
    PyTypeObject *types[] = {&plus_tasklet_type, &plus_channel_type, &plus_bomb_type,
                             &plus_delivery_type};

    if (PyModule_AddFunctions(module, refusal_method) < 0) {
        return -1;
    }
    if (plus_pystate_refusal() != NULL) {
        return 0;
    }
    if (PyModule_AddFunctions(module, tasklets_methods) < 0 ||
        PyModule_AddFunctions(module, plus_io_methods) < 0 ||
        PyModule_AddFunctions(module, plus_timing_methods) < 0) {
        return -1;
    }
    if (plus_waiters_exec(module) < 0 || plus_task_locks_exec(module) < 0 ||
        plus_task_local_exec(module) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (PyModule_AddType(module, types[i]) < 0) {
            return -1;
        }
    }
    if (plus_bomb_prepare() < 0) {
        return -1;
    }
    /* `atomic` is the GIL's in this module. */
    if (PyType_Ready(&atomic_type) < 0 ||
        PyModule_AddObjectRef(module, "tasklet_atomic", (PyObject *)&atomic_type) < 0) {
        return -1;
    }
    if (plus_tasklet_exit == NULL) {
        plus_tasklet_exit = PyErr_NewExceptionWithDoc("cpythonplus.tasklets.TaskletExit",
                                                      "Raised in a tasklet that is to end.",
                                                      PyExc_SystemExit, NULL);
    }
    if (plus_tasklet_exit == NULL) {
        return -1;
    }
    if (PyModule_AddStringConstant(module, "tasklets_engine", plus_pystate_engine) < 0) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "TaskletExit", plus_tasklet_exit);
}
