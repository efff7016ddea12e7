/* Walks the threads, their queues and their stacks, and groups the tasklets that are alike.
 *
 * The walk is done in one go, with the GIL held and without running Python code.  So no tasklet is shown twice or left
 * out, and no frame changes under the walk.  The garbage collector is off, as up to 3.11 making an object may start it.
 * Names are taken only from objects of known types, since an attribute of another object may run code.  Python code
 * (_dump/reporting.py) adds words, ages and files after the walk.
 *
 * A thread's tasklets come in this order: the running one, the run queue in its order, main, then all others that have
 * a C stack.  A tasklet that has not begun is found only in the run queue.  Our own hub is left out unless it runs: its
 * waits are shown at the tasklets that wait.
 *
 * A million tasklets need a million walks over frames, but objects are made only for those that are shown: each tasklet
 * is first written as a row of addresses (state, function, channel's maker, frames), which is looked up in a dict.
 * Rejected: letting Python group complete records, which takes a gigabyte for them.
 *
 * A cold tasklet is read from its copy, see cold.c.
 *
 * Only the note of a deadlock error runs Python code here, after the walk, with switches refused.  By then another
 * thread may have made a tasklet runnable, so the caller checks again.
 */
#include "report.h"

#include "../core/task.h"
#include "../scheduling/snapshot.h"

#include "../../_interp/saved_frames/frame_build.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../../_base/rows.h"

/* ---- a row of addresses ----------------------------------------------------------------------- */

struct row {
    uintptr_t *words;
    size_t used, room;
    bool failed; /* no memory; further words are ignored */
};

static void
put(struct row *row, uintptr_t word)
{
    uintptr_t *words = plus_room_for_one(row->words, row->used, &row->room, 64, sizeof *words);

    if (words == NULL) {
        row->failed = true;
        return;
    }
    row->words = words;
    words[row->used++] = word;
}

static void
put_position(struct row *row, PyCodeObject *code, int offset)
{
#if PY_VERSION_HEX <                                                                               \
    0x030C0000 /* a call is one of two instructions, before and after specialising */
    offset = code != NULL ? plus_frames_line(code, offset) : 0;
#endif
    put(row, (uintptr_t)code);
    put(row, (uintptr_t)offset);
}

static int
put_frame(PyCodeObject *code, int offset, void *arg)
{
    put_position(arg, code, offset);
    return ((struct row *)arg)->failed ? -1 : 0;
}

/* ---- names and places ------------------------------------------------------------------------- */

static PyObject *
place(PyCodeObject *code, int line)
{
    PyObject *number = line > 0 ? PyLong_FromLong(line) : Py_NewRef(Py_None);

    if (number == NULL) {
        return NULL;
    }
    return Py_BuildValue("(ONO)", code->co_filename, number, code->co_name);
}

static int
append_place(PyCodeObject *code, int offset, void *list)
{
    return plus_append_new(list, place(code, plus_frames_line(code, offset)));
}

/* The frames on a stack; for a loaded tasklet that has not gone on, its captured frames. */
struct stack {
    struct plus_frames frames;
    PyObject *captured; /* borrowed, or NULL */
};

static struct stack
stack_now(const struct plus_tasklet *task)
{
    PyObject *captured = plus_is_snapshot(task->func) ? plus_snapshot_frames(task->func) : NULL;

    return (struct stack){plus_tasklet_frames_now(task), captured};
}

/* Visits the frames, innermost first. */
static int
each_frame(struct stack stack, int (*visit)(PyCodeObject *, int, void *), void *arg)
{
    int result = 0;

    if (stack.captured == NULL) {
        return plus_frames_each(&stack.frames, visit, arg);
    }
    for (Py_ssize_t i = PyTuple_GET_SIZE(stack.captured); i-- > 0 && result == 0;) {
        struct plus_captured item = plus_frames_captured(stack.captured, i);
        result = visit(item.code, item.offset, arg);
    }
    return result;
}

/* Returns a tuple of places, outermost first. */
static PyObject *
places_of(struct stack stack)
{
    PyObject *list = PyList_New(0), *tuple = NULL;

    if (list != NULL && each_frame(stack, append_place, list) == 0 && PyList_Reverse(list) == 0) {
        tuple = PyList_AsTuple(list);
    }
    Py_XDECREF(list);
    return tuple;
}

static PyObject *
type_name(PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');

    return PyUnicode_FromString(dot != NULL ? dot + 1 : type->tp_name);
}

static PyObject *
without_self(PyObject *func)
{
    if (plus_is_snapshot(func)) {
        return plus_snapshot_function(func);
    }
    return func != NULL && PyMethod_Check(func) ? PyMethod_GET_FUNCTION(func) : func;
}

/* Reads only what needs no code to run; an attribute might run any. */
static PyObject *
function_name(PyObject *func)
{
    func = without_self(func);
    if (func == NULL) {
        Py_RETURN_NONE;
    }
    if (PyFunction_Check(func)) {
        return Py_NewRef(((PyFunctionObject *)func)->func_qualname);
    }
    if (PyCFunction_Check(func)) {
        return PyUnicode_FromString(((PyCFunctionObject *)func)->m_ml->ml_name);
    }
    return type_name(PyType_Check(func) ? (PyTypeObject *)func : Py_TYPE(func));
}

static PyCodeObject *
function_code(PyObject *func)
{
    func = without_self(func);
    return func != NULL && PyFunction_Check(func) ? (PyCodeObject *)PyFunction_GET_CODE(func)
                                                  : NULL;
}

/* A value that is equal for two tasklets with the same function. */
static uintptr_t
function_identity(PyObject *func)
{
    PyCodeObject *code = function_code(func);

    func = without_self(func);
    if (func == NULL || code != NULL) {
        return (uintptr_t)code;
    }
    if (PyCFunction_Check(func)) {
        return (uintptr_t)((PyCFunctionObject *)func)->m_ml;
    }
    return (uintptr_t)(PyType_Check(func) ? (PyTypeObject *)func : Py_TYPE(func));
}

static PyObject *
place_or_none(PyCodeObject *code, int offset)
{
    return code != NULL ? place(code, plus_frames_line(code, offset)) : Py_NewRef(Py_None);
}

/* Returns (address, place where it was made or None) of the channel that the tasklet waits on, or None. */
static PyObject *
channel_of(const struct plus_tasklet *task)
{
    struct plus_channel *channel = task->channel;

    if (!task->blocked || channel == NULL || (channel->waits != NULL && channel->made_by == NULL)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(KN)", (unsigned long long)(uintptr_t)channel,
                         place_or_none((PyCodeObject *)channel->made_by, channel->made_at));
}

/* ---- one tasklet ------------------------------------------------------------------------------ */

/* The running tasklet may be blocked: while its whole thread waits for others, there was no tasklet to switch to. */
static const char *
state_of(const struct plus_tasklet *task)
{
    return task->blocked && task->channel->waits != NULL ? task->channel->waits
           : task->blocked > 0                           ? "sending"
           : task->blocked < 0                           ? "receiving"
           : task->sched->running == task                ? "current"
           : task->next != NULL                          ? "runnable"
           : plus_called_run(task->sched, task)          ? "in run()"
                                                         : "paused";
}

/* The state with the descriptor that the tasklet waits for. */
static PyObject *
state_text(const struct plus_tasklet *task)
{
    const char *state = state_of(task);
    int fd = task->blocked && task->channel->waits != NULL ? task->channel->descriptor : -1;

    return fd >= 0 ? PyUnicode_FromFormat("%s %d", state, fd) : PyUnicode_FromString(state);
}

/* Whether the tasklet is blocked or paused, and not waiting in run(). */
static bool
waits(const struct plus_tasklet *task)
{
    bool paused = plus_is_floating(task) && task->sched->running != task &&
                  !plus_called_run(task->sched, task);

    return task->parked_ns != 0 && (task->blocked || paused);
}

static uint64_t
waited_ns(const struct plus_tasklet *task, uint64_t now_ns)
{
    return waits(task) && now_ns > task->parked_ns ? now_ns - task->parked_ns : 0;
}

static PyObject *
record(const struct plus_tasklet *task, uint64_t now_ns)
{
    PyCodeObject *code = function_code(task->func);
    PyObject *waited =
        waits(task) ? PyLong_FromUnsignedLongLong(waited_ns(task, now_ns)) : Py_NewRef(Py_None);
    PyObject *main = PyBool_FromLong(task->is_main),
             *begun = PyBool_FromLong(task->started || task->vacated);
    PyObject *defined = code != NULL ? place(code, code->co_firstlineno) : Py_NewRef(Py_None);

    /* If an argument of N is NULL, Py_BuildValue drops the others and returns NULL. */
    return Py_BuildValue("(KNNNNNNNNN)", (unsigned long long)(uintptr_t)task,
                         type_name(Py_TYPE(task)), main, begun, state_text(task),
                         function_name(task->func), defined, channel_of(task), waited,
                         places_of(stack_now(task)));
}

/* ---- the tasklets of a thread ----------------------------------------------------------------- */

struct group {
    Py_ssize_t more;     /* number of tasklets that are not shown */
    uint64_t longest_ns; /* the longest wait among those */
    PyObject *records;   /* of the tasklets that are shown; borrowed from `lists` */
};

struct gathering {
    Py_ssize_t most_alike;
    uint64_t now_ns;
    struct row row;
    PyObject *places; /* dict: bytes of the row -> index into groups */
    PyObject *lists;
    struct group *groups;
    size_t count, room;
};

static int
note_row(struct gathering *all, const struct plus_tasklet *task)
{
    struct row *row = &all->row;
    const struct plus_channel *channel = task->blocked ? task->channel : NULL;

    row->used = 0;
    put(row, (uintptr_t)Py_TYPE(task));
    put(row, (uintptr_t)state_of(task));
    put(row, (uintptr_t)task->is_main * 2 + (task->started || task->vacated));
    put(row, function_identity(task->func));
    put_position(row, channel != NULL ? (PyCodeObject *)channel->made_by : NULL,
                 channel != NULL ? channel->made_at : 0);
    (void)each_frame(stack_now(task), put_frame, row);
    if (row->failed) {
        PyErr_NoMemory();
    }
    return row->failed ? -1 : 0;
}

/* Returns the index, or -1 with an exception. */
static Py_ssize_t
add_group(struct gathering *all, PyObject *key)
{
    struct group *groups =
        plus_room_for_one(all->groups, all->count, &all->room, 16, sizeof *groups);

    if (groups == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    all->groups = groups;
    PyObject *index = PyLong_FromSize_t(all->count), *records = PyList_New(0);
    bool failed = index == NULL || records == NULL || PyList_Append(all->lists, records) < 0 ||
                  PyDict_SetItem(all->places, key, index) < 0;

    if (!failed) {
        groups[all->count] = (struct group){.records = records};
    }
    Py_XDECREF(records);
    Py_XDECREF(index);
    return failed ? -1 : (Py_ssize_t)all->count++;
}

static struct group *
group_of(struct gathering *all, const struct plus_tasklet *task)
{
    if (note_row(all, task) < 0) {
        return NULL;
    }
    PyObject *key = PyBytes_FromStringAndSize((char *)all->row.words,
                                              (Py_ssize_t)(all->row.used * sizeof(uintptr_t)));
    PyObject *found = key != NULL ? PyDict_GetItemWithError(all->places, key) : NULL;
    Py_ssize_t index = -1;

    if (found != NULL) {
        index = PyLong_AsSsize_t(found);
    }
    else if (key != NULL && !PyErr_Occurred()) {
        index = add_group(all, key);
    }
    Py_XDECREF(key);
    return index >= 0 ? &all->groups[index] : NULL;
}

static int
gather(struct gathering *all, const struct plus_tasklet *task)
{
    if (task == task->sched->loop.own_hub && task != task->sched->running) {
        return 0; /* the waits of a hub are shown at the tasklets that wait for it */
    }
    struct group *group = group_of(all, task);

    if (group == NULL) {
        return -1;
    }
    if (PyList_GET_SIZE(group->records) < all->most_alike) {
        return plus_append_new(group->records, record(task, all->now_ns));
    }
    uint64_t waited = waited_ns(task, all->now_ns);

    group->more++;
    group->longest_ns = waited > group->longest_ns ? waited : group->longest_ns;
    return 0;
}

/* Skips tasklets that were gathered before: those in the queue, main and the running one. */
static int
gather_parked(struct plus_tasklet *task, void *arg)
{
    if (plus_is_runnable(task) || task == task->sched->running) {
        return 0;
    }
    return gather(arg, task);
}

/* Main may be ending with its thread; the running one may have just ended, and has no function then. */
static int
gather_outside(struct gathering *all, const struct plus_tasklet *task)
{
    if (task == NULL || !task->alive || plus_is_runnable(task) ||
        (task->func == NULL && !task->is_main)) {
        return 0;
    }
    return gather(all, task);
}

static int
gather_thread(struct gathering *all, struct plus_scheduler *sched)
{
    const struct plus_tasklet *task = sched->current;
    bool apart = sched->running != sched->main;

    if (gather_outside(all, sched->running) < 0) {
        return -1;
    }
    for (int i = 0; task != NULL && i < sched->runcount; i++, task = task->next) {
        if (gather(all, task) < 0) {
            return -1;
        }
    }
    if (apart && gather_outside(all, sched->main) < 0) {
        return -1;
    }
    return plus_scheduler_each(sched, gather_parked, all);
}

/* Returns a list of (records, more, longest_ns). */
static PyObject *
groups_of(const struct gathering *all)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < all->count; i++) {
        const struct group *group = &all->groups[i];
        plus_append_row(&list, Py_BuildValue("(OnK)", group->records, group->more,
                                             (unsigned long long)group->longest_ns));
    }
    return list;
}

static PyObject *
tasklets_of(struct plus_scheduler *sched, Py_ssize_t most_alike)
{
    struct gathering all = {.most_alike = most_alike, .now_ns = plus_now_ns()};
    PyObject *result = NULL;

    all.places = PyDict_New();
    all.lists = PyList_New(0);
    if (all.places != NULL && all.lists != NULL &&
        (sched == NULL || gather_thread(&all, sched) == 0)) {
        result = groups_of(&all);
    }
    Py_XDECREF(all.places);
    Py_XDECREF(all.lists);
    plus_free(all.groups);
    plus_free(all.row.words);
    return result;
}

/* ---- the threads ------------------------------------------------------------------------------ */

static PyObject *
thread_record(PyThreadState *tstate, Py_ssize_t most_alike)
{
    struct plus_scheduler *sched = plus_scheduler_of(tstate);
    bool asleep = sched != NULL && sched->idle.blocked;
    PyObject *own = PyBool_FromLong(tstate == PyThreadState_Get());

    return Py_BuildValue("(kkNNNN)", plus_pystate_ident(tstate), plus_pystate_native_id(tstate),
                         own, PyBool_FromLong(asleep), tasklets_of(sched, most_alike),
                         places_of((struct stack){.frames = plus_frames_of_thread(tstate)}));
}

static PyObject *
take(enum plus_report_threads which, Py_ssize_t most_alike)
{
    PyThreadState *own = PyThreadState_Get();
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
    PyObject *list = PyList_New(0);

    for (; list != NULL && which != PLUS_REPORT_OWN && tstate != NULL;
         tstate = PyThreadState_Next(tstate)) {
        bool begun = plus_pystate_ident(tstate) != 0; /* 0: the thread is being started */

        if (tstate != own && begun) {
            plus_append_row(&list, thread_record(tstate, most_alike));
        }
    }
    if (list != NULL && which != PLUS_REPORT_OTHERS) {
        plus_append_row(&list, thread_record(own, most_alike));
    }
    if (list != NULL && PyList_Reverse(list) < 0) { /* the interpreter lists the newest first */
        Py_CLEAR(list);
    }
    return list;
}

PyObject *
plus_report_make(enum plus_report_threads which, Py_ssize_t most_alike)
{
    /* Up to 3.11 making an object may start a collection, and that runs finalisers. */
    int collects = PyGC_Disable();
    PyObject *list = take(which, most_alike);

    if (collects) {
        PyGC_Enable();
    }
    return list;
}

/* ---- the note of a deadlock error ------------------------------------------------------------- */

/* Drops the exception.  If a signal handler raised KeyboardInterrupt meanwhile, the signal is sent again, for later. */
static void
forget_failure(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();
    }
    PyErr_Clear();
}

void
plus_report_add_note(struct plus_scheduler *sched, PyObject *exception)
{
    PyThreadState *tstate = sched->tstate;
    bool in_callback = sched->in_callback;

    sched->in_callback = true;
    PyThreadState_EnterTracing(tstate); /* no debugger steps through this */
    PyObject *make = plus_import_from("cpythonplus.tasklets._dump.reporting", "note");
    PyObject *note = make != NULL ? PyObject_CallNoArgs(make) : NULL;
    PyObject *done = note != NULL ? PyObject_CallMethod(exception, "add_note", "(O)", note) : NULL;

    if (done == NULL) {
        forget_failure();
    }
    PyThreadState_LeaveTracing(tstate);
    sched->in_callback = in_callback;
    Py_XDECREF(make);
    Py_XDECREF(note);
    Py_XDECREF(done);
}
