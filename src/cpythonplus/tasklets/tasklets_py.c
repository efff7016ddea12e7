/* The room's functions of the extension module, and the context manager `atomic`. */
#include "binding.h"

#include "../_base/methods.h"
#include "../_base/process/clock.h"
#include "../_base/rows.h"
#include "../threads/binding.h"
#include "_dump/dump_signal.h"
#include "_dump/report.h"
#include "channels/channel.h"
#include "core/bomb.h"
#include "core/cold.h"
#include "core/fence.h"
#include "core/overflow.h"
#include "core/own_stack.h"
#include "io/hub.h"
#include "locks/locks.h"
#include "running/binding.h"
#include "running/finalizing.h"
#include "running/tasklet.h"
#include "running/tasklet_py.h"
#include "running/thread.h"
#include "scheduling/parking.h"
#include "scheduling/switching.h"
#include "stacks/switch.h"
#include "tracing/interrupts.h"
#include "tracing/tracing.h"
#include "waiting/outside.h"
#include "watchdog/deadline.h"

#define METHOD(name, ...) PLUS_METHOD(#name, tasklets_##name, __VA_ARGS__)
#define METHOD_KW(name, ...) PLUS_METHOD_KW(#name, tasklets_##name, __VA_ARGS__)

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
    struct plus_watch_options to = {.seconds = -1};

    if (sched == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|lpppp:run", names, &to.timeout,
                                     &to.threadblock, &to.soft, &to.ignore_nesting, &to.total)) {
        return NULL;
    }
    return plus_run(sched, &to);
}

static PyObject *
tasklets_run_for(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"seconds", "threadblock", "soft", "ignore_nesting", NULL};
    struct plus_scheduler *sched = plus_scheduler_get();
    struct plus_watch_options to = {0};

    if (sched == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "d|$ppp:run_for", names, &to.seconds,
                                     &to.threadblock, &to.soft, &to.ignore_nesting)) {
        return NULL;
    }
    if (!(to.seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "seconds must be a non-negative number");
        return NULL;
    }
    return plus_run(sched, &to);
}

/* ---- queries ---------------------------------------------------------------------------------- */

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

    /* Our own hub does not count: it only works for the other tasklets. */
    bool hub = sched != NULL && sched->loop.own_hub != NULL &&
               sched->loop.own_hub != sched->running && plus_is_runnable(sched->loop.own_hub);

    return sched != NULL ? PyLong_FromLong(sched->runcount - hub) : NULL;
}

/* Makes no scheduler for the caller, because an import may call this, in any thread at any time. */
static PyObject *
tasklets_get_ident(PyObject *module, PyObject *ignored)
{
    const struct plus_scheduler *sched = plus_scheduler_own;

    return sched == NULL || sched->running == sched->main
               ? PyLong_FromUnsignedLong(PyThread_get_thread_ident())
               : PyLong_FromVoidPtr(sched->running);
}

PLUS_RETURNS(tasklets_has_scheduler, PyBool_FromLong(plus_scheduler_own != NULL))
PLUS_RETURNS(tasklets_getcurrentid,
             plus_scheduler_get() != NULL ? tasklets_get_ident(self, NULL) : NULL)

/* Called in the child of a fork: makes a tasklet that was a thread in the parent never go on. */
static PyObject *
tasklets_abandon(PyObject *module, PyObject *arg)
{
    struct plus_tasklet *task;

    if (!PyArg_Parse(arg, "O!", &plus_tasklet_type, &task)) {
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
    sched = ident == 0 || ident == -1 ? plus_scheduler_get()
                                      : plus_scheduler_of_thread((unsigned long)ident);
    if (sched == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "Thread id not found");
        }
        return NULL;
    }
    struct plus_tasklet *current = sched == plus_scheduler_own ? sched->running : sched->current;
    PyObject *main = Py_NewRef(sched->main);

    /* Making the tuple may run code. */
    return Py_BuildValue("(NNi)", main, Py_NewRef(current != NULL ? (PyObject *)current : Py_None),
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
        plus_append_row(&list, PyLong_FromUnsignedLong(plus_pystate_ident(sched->tstate)));
    }
    return list;
}

/* ---- callbacks -------------------------------------------------------------------------------- */

/* Puts a callable or None into *slot; returns the former value. */
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

#define CALLBACK(kind)                                                                             \
    static PyObject *tasklets_set_##kind##_callback(PyObject *module, PyObject *callable)          \
    {                                                                                              \
        return exchange(&plus_##kind##_hook, callable, #kind " callback must be callable");        \
    }                                                                                              \
    static PyObject *tasklets_get_##kind##_callback(PyObject *module, PyObject *ignored)           \
    {                                                                                              \
        return Py_NewRef(plus_##kind##_hook != NULL ? plus_##kind##_hook : Py_None);               \
    }

CALLBACK(channel)
CALLBACK(schedule)

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
    int old = sched->turn.trap;

    sched->turn.trap += change;
    return PyLong_FromLong(old);
}

static PyObject *
tasklets_set_foreign_wakers(PyObject *module, PyObject *flag)
{
    bool old = plus_foreign_wakers;
    int value = PyObject_IsTrue(flag);

    plus_foreign_wakers = value < 0 ? old : value != 0;
    return value < 0 ? NULL : PyBool_FromLong(old);
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

/* 3.14's JIT needs 123 KiB to compile; 3.15's crashes with little stack when it drops compiled code. */
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

PLUS_DOES(tasklets_kill_all, plus_schedulers_end())
PLUS_DOES(tasklets_before_fork, plus_deadline_before_fork())
PLUS_DOES(tasklets_after_fork_parent, plus_deadline_after_fork_parent())

static PyObject *
tasklets_after_fork(PyObject *module, PyObject *ignored)
{
    plus_deadline_after_fork();
    if (plus_scheduler_own != NULL) {
        plus_hub_after_fork(plus_scheduler_own);
        plus_task_locks_after_fork(plus_scheduler_own);
        /* The forking tasklet may wait for a thread, such as the one that fills a multiprocessing.Queue.  Meanwhile
         * the callers of run() must not go on: they would do in the child what they do in the parent. */
        plus_scheduler_own->runs.threadblock |= plus_scheduler_own->runs.count > 0;
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

PLUS_DOES(tasklets_stop_deadlines, plus_deadline_stop())

/* NULL, or the reason why this processor or interpreter cannot have tasklets.  Checked at each start. */
static const char *
place_refusal(void)
{
#ifdef Py_GIL_DISABLED
    return "tasklets need an interpreter that is built with a GIL";
#endif
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return "tasklets work in the main interpreter only";
    }
    return plus_switch_refusal();
}

/* NULL, or the reason why there can be no tasklets.  Checked when they are imported. */
static const char *
why_not(void)
{
    static const enum plus_fact needed[] = {
        PLUS_FACT_THREAD_STATE,    PLUS_FACT_FRAMES,        PLUS_FACT_OPERANDS,
        PLUS_FACT_INSTRUMENTATION, PLUS_FACT_FRAME_TRACING,
    };
    const char *refusal = place_refusal();

    return refusal != NULL ? refusal : plus_facts_refusal(needed, sizeof needed / sizeof needed[0]);
}

static PyObject *
tasklets_refusal(PyObject *module, PyObject *ignored)
{
    const char *refusal = why_not();

    return refusal != NULL ? PyUnicode_FromString(refusal) : Py_NewRef(Py_None);
}

PLUS_DOES(tasklets_fence_greenlets, plus_fence_greenlets())
PLUS_DOES(tasklets_decline_sigsegv, plus_overflow_decline())

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

PLUS_DOES(tasklets_dump_pause, plus_dump_signal_pause())
PLUS_DOES(tasklets_dump_resume, plus_dump_signal_resume(arg == Py_True))

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

/* PyType_GenericNew would accept any argument: as a decorator atomic() would silently replace the function. */
static PyObject *
atomic_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return plus_no_arguments("atomic", args, kwargs) < 0 ? NULL : type->tp_alloc(type, 0);
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
    PLUS_METHOD("tasklets_refusal", tasklets_refusal, METH_NOARGS, "$module, /",
                "Why there are no tasklets here, or None."),
    {NULL, NULL, 0, NULL},
};

static PyMethodDef tasklets_methods[] = {
    PLUS_METHOD("tasklets_kill_all", tasklets_kill_all, METH_NOARGS, "$module, /",
                "End this thread's tasklets that have begun, as at the thread's end."),
    PLUS_METHOD("tasklets_fence_greenlets", tasklets_fence_greenlets, METH_NOARGS, "$module, /",
                "Have greenlet, which is loaded, refuse to switch in tasklets."),
    PLUS_METHOD("tasklets_decline_sigsegv", tasklets_decline_sigsegv, METH_NOARGS, "$module, /",
                "Have no handler for SIGSEGV; before the first use of tasklets."),
    PLUS_METHOD("tasklets_before_fork", tasklets_before_fork, METH_NOARGS, "$module, /",
                "For who forks: no thread of tasklets' own is left."),
    PLUS_METHOD("tasklets_after_fork_parent", tasklets_after_fork_parent, METH_NOARGS, "$module, /",
                "For the parent of a fork."),
    PLUS_METHOD("tasklets_after_fork", tasklets_after_fork, METH_NOARGS, "$module, /",
                "For the child of a fork."),
    PLUS_METHOD(
        "tasklets_event_changes", tasklets_event_changes, METH_VARARGS, "$module, pretended=0, /",
        "How often run(timeout) has switched events on or off; for tests: so many times more."),
    PLUS_METHOD("tasklets_stop_deadlines", tasklets_stop_deadlines, METH_NOARGS, "$module, /",
                "Let run_for() interrupt nothing any more, as the interpreter ends."),
    METHOD(getthreads, METH_NOARGS, "$module, /",
           "Identities of the threads that have used tasklets."),
    METHOD_KW(schedule, METH_FASTCALL | METH_KEYWORDS, "$module, /, retval=...",
              "Let the next runnable tasklet run; return retval when it is this one's turn "
              "again.\n\n"
              "retval: by default the current tasklet."),
    METHOD_KW(schedule_remove, METH_FASTCALL | METH_KEYWORDS, "$module, /, retval=...",
              "The same, and take the current tasklet out of the queue."),
    METHOD_KW(run, METH_VARARGS | METH_KEYWORDS,
              "$module, /, timeout=0, threadblock=False, soft=False, ignore_nesting=False, "
              "totaltimeout=False",
              "Run all tasklets until none is runnable, or until the time-out; return None.\n\n"
              "timeout: events (calls of Python functions, resumptions of generators, jumps\n"
              "back); 0: none.  The tasklet that has run for so long is interrupted, taken out\n"
              "of the queue and returned; insert() lets it go on.\n"
              "threadblock: wait for other threads when nothing is runnable.\n"
              "soft: interrupt nobody; return None at the next switch after the time-out.\n"
              "ignore_nesting: interrupt Python code that C code has called, too.\n"
              "totaltimeout: count all tasklets together, not each for itself.\n\n"
              "An exception that leaves a tasklet is raised here.  RuntimeError if no tool of\n"
              "sys.monitoring is free (3.12 and later)."),
    METHOD_KW(run_for, METH_VARARGS | METH_KEYWORDS,
              "$module, /, seconds, *, threadblock=False, soft=False, ignore_nesting=False",
              "The same with a time-out in seconds, for all tasklets together.\n\n"
              "Nothing is slower before it has passed.  ValueError for a negative number."),
    METHOD(getcurrent, METH_NOARGS, "$module, /", "The tasklet that runs."),
    METHOD(getmain, METH_NOARGS, "$module, /", "The first tasklet of this thread."),
    METHOD(getruncount, METH_NOARGS, "$module, /",
           "How many tasklets of this thread are runnable."),
    PLUS_METHOD("tasklets_get_ident", tasklets_get_ident, METH_NOARGS, "$module, /",
                "A number that no other tasklet and no other thread has now."),
    PLUS_METHOD("tasklets_has_scheduler", tasklets_has_scheduler, METH_NOARGS, "$module, /",
                "Whether the calling thread has used tasklets; it gets no scheduler by asking."),
    PLUS_METHOD(
        "tasklets_lock_waits", plus_task_lock_waits, METH_NOARGS, "$module, /",
        "(tasklet, lock, address of the tasklet that holds it or 0, ns) of each tasklet that\n"
        "waits for a lock without a time-out."),
    PLUS_METHOD("tasklets_lock_for_imports", plus_task_lock_for_imports, METH_O, "$module, kind, /",
                "A Lock or RLock for importlib: run() waits while another thread imports."),
    PLUS_METHOD("tasklets_abandon", tasklets_abandon, METH_O, "$module, tasklet, /",
                "Have one never go on, nor end: what a fork makes of other threads."),
    METHOD(getcurrentid, METH_NOARGS, "$module, /",
           "A number for the tasklet that runs; main's is that of its thread."),
    METHOD(get_thread_info, METH_VARARGS, "$module, thread_id=0, /",
           "(main tasklet, current tasklet, number of runnables) of a thread.\n\n"
           "RuntimeError if that thread has no tasklets."),
    METHOD(set_channel_callback, METH_O, "$module, callable, /",
           "Call callable(channel, tasklet, sending, willblock) before each action; None: no "
           "more.\n\n"
           "Returns the previous one."),
    METHOD(get_channel_callback, METH_NOARGS, "$module, /", "The callable, or None."),
    METHOD(set_schedule_callback, METH_O, "$module, callable, /",
           "Call callable(previous, next) before each switch; None: no more.\n\n"
           "Returns the previous one."),
    METHOD(get_schedule_callback, METH_NOARGS, "$module, /", "The callable, or None."),
    METHOD(set_error_handler, METH_VARARGS, "$module, callable=None, /",
           "Call callable(type, value, traceback) for what leaves a tasklet, instead of raising "
           "it\n"
           "in main; None: raise it there.  Returns the previous one."),
    METHOD(set_foreign_wakers, METH_O, "$module, flag, /",
           "Whether a thread that has never used tasklets counts as one that may wake a blocked "
           "one.\n\n"
           "True (default, as in Stackless): beside such a thread nothing is a deadlock, "
           "blocking waits.\n"
           "False: for programs whose other threads only help.  Returns what it was."),
    METHOD(set_trace_inheritance, METH_O, "$module, flag, /",
           "Whether new tasklets have trace and profile functions: those that "
           "threading.settrace() and\n"
           "setprofile() have for new threads, or else those of the caller that gives them their "
           "arguments.\n\n"
           "None (default): where the caller that gives them their arguments has any; False: "
           "never; True: "
           "always.\n"
           "Returns what it was."),
    METHOD(switch_trap, METH_VARARGS, "$module, change=0, /",
           "Change the level above 0 of which switching raises RuntimeError; return the old one."),
    METHOD(stack_size, METH_VARARGS, "$module, size_bytes=..., /",
           "Size of the C stacks of tasklets that begin from now on, in bytes; 0: the "
           "default.\n\n"
           "Without an argument nothing is changed.  Returns the old size.  ValueError outside "
           "of 64 KiB to 1 GiB."),
    METHOD_KW(trim_stacks, METH_VARARGS | METH_KEYWORDS, "$module, /, parked_s=0.0",
              "Let tasklets that have been blocked or paused for so many seconds keep only what is "
              "in use of\n"
              "their stacks.\n\n"
              "Those of all threads; returns how many it has done that to.  They get their stacks "
              "back when they\n"
              "run again.  ValueError if negative."),
    PLUS_METHOD(
        "tasklets_report_raw", tasklets_report_raw, METH_VARARGS, "$module, which, most_alike, /",
        "What cpythonplus.tasklets._dump.reporting makes reports of; which threads: 0 this one, 1 "
        "all,\n"
        "2 the others."),
    PLUS_METHOD("tasklets_dump_on", tasklets_dump_on, METH_VARARGS, "$module, signum, call, /",
                "Have call(signum) called on the signal, by a thread of its own."),
    PLUS_METHOD("tasklets_dump_off", tasklets_dump_off, METH_VARARGS, "$module, signum, /",
                "Put the previous handler back; return whether there was anything to undo."),
    PLUS_METHOD("tasklets_dump_pause", tasklets_dump_pause, METH_NOARGS, "$module, /",
                "End that thread: before a fork, at exit."),
    PLUS_METHOD("tasklets_dump_resume", tasklets_dump_resume, METH_O, "$module, child, /",
                "Start it again after a fork; in the child the parent's signals are forgotten."),
    {NULL, NULL, 0, NULL},
};

int
plus_tasklets_exec(PyObject *module)
{
    /* Other rooms have the names Lock, RLock and `atomic` in this module. */
    static const struct {
        const char *name; /* NULL: not for Python code */
        PyTypeObject *type;
    } types[] = {
        {"tasklet", &plus_tasklet_type},
        {"channel", &plus_channel_type},
        {"bomb", &plus_bomb_type},
        {"io_delivery", &plus_delivery_type},
        {"tasklets_Lock", &plus_task_lock_type},
        {"tasklets_RLock", &plus_task_rlock_type},
        {"tasklets_local", &plus_task_local_type},
        {"tasklet_atomic", &atomic_type},
        {NULL, &plus_waiters_type},
    };

    if (PyModule_AddFunctions(module, refusal_method) < 0) {
        return -1;
    }
    if (place_refusal() != NULL) {
        return 0;
    }
    plus_threads_prepare();
    if (PyModule_AddFunctions(module, tasklets_methods) < 0 ||
        PyModule_AddFunctions(module, plus_io_methods) < 0 ||
        PyModule_AddFunctions(module, plus_timing_methods) < 0 ||
        PyModule_AddFunctions(module, plus_pickling_methods) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        PyObject *type = (PyObject *)types[i].type;

        if (PyType_Ready(types[i].type) < 0 ||
            (types[i].name != NULL && PyModule_AddObjectRef(module, types[i].name, type) < 0)) {
            return -1;
        }
    }
    if (plus_tasklet_exit == NULL) {
        plus_tasklet_exit = PyErr_NewExceptionWithDoc("cpythonplus.tasklets.TaskletExit",
                                                      "Raised in a tasklet that is to end.",
                                                      PyExc_SystemExit, NULL);
    }
    if (plus_tasklet_exit == NULL || plus_bomb_prepare() < 0 || plus_finalizing_prepare() < 0 ||
        plus_pickling_prepare(module) < 0) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "TaskletExit", plus_tasklet_exit);
}
