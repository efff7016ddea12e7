/* The stalls of the GIL and of locks, with the stack of the thread that had them.
 *
 * A record of a lock is written by the thread that has just released it, with the GIL.  Its stack is what a thread that
 * waited has seen when half of the limit was over, so it tells the line inside; else it is the stack at the release.
 *
 * One of the GIL is written by the thread that gives the GIL up, inside of its release, while the GIL's mutex keeps others from
 * taking it.  So it may read its own frames and take references to their code, as with the GIL; it must not give one back,
 * or make an object.  Records are taken out by threads that have the GIL.  There is room for RECORDS; more are counted.
 *
 * A hold that lasts is looked at by a waiter, without the GIL.  The holder cannot give the GIL up meanwhile, so its thread
 * state stays.  That it has not answered a request for many intervals shows that it is inside of one C call, so its frames
 * do not change; the interpreter's faulthandler relies on the same.  In an atomic section Python code may run, and the
 * frames are not read.
 *
 * Python code answers a request at the next call, jump or function.  After `a ** b` or `del a` that may be another line, so
 * the line of the sample is told if its function still runs.
 */
#include "binding.h" /* Python.h first: it sets the feature macros */

#include "../_base/methods.h"
#include "../_base/process/behind_fork.h"
#include "../_base/process/clock.h"
#include "../_base/process/fork.h"
#include "../_base/raise.h"
#include "../_base/rows.h"
#include "../_interp/facts/facts.h"
#include "../_interp/frames/frames.h"
#include "control.h"
#include "scheduler/sched.h"

#include <stdio.h>
#include <unistd.h>

#define RECORDS 128u
#define FRAMES 24u

struct position {
    PyCodeObject *code; /* a reference */
    int offset;
};

struct record {
    struct plus_stall stall;
    uint64_t ended_ns;
    unsigned long ident;
    pid_t native_id;
    struct position made; /* the line that made the lock; code NULL: it is not known */
    bool of_lock;
    size_t frames;
    struct position frame[FRAMES]; /* innermost first */
};

/* The holder's frames while it holds the GIL, innermost first; only compared.  Written under the GIL's mutex. */
static struct {
    size_t frames;
    struct position frame[FRAMES];
} sample;

/* Written with the GIL, or in its release. */
static struct record *records; /* RECORDS of them, made when stalls are first told */
static size_t recorded, lost;

static int
add_frame(PyCodeObject *code, int offset, void *argument)
{
    struct record *record = argument;

    if (record->frames == FRAMES) {
        return 1;
    }
    plus_compat_count((PyObject *)code, 1);
    record->frame[record->frames++] = (struct position){code, offset};
    return 0;
}

static bool
is_of_main_interpreter(PyThreadState *tstate)
{
    return PyThreadState_GetInterpreter(tstate) == PyInterpreterState_Main();
}

/* The frames of another thread of the main interpreter, which has the GIL, or the caller has it; none if it has no
 * thread state. */
static struct plus_frames
frames_of(unsigned long ident)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Main());

    while (tstate != NULL && plus_pystate_ident(tstate) != ident) {
        tstate = PyThreadState_Next(tstate);
    }
    return tstate != NULL ? plus_frames_of_thread(tstate) : (struct plus_frames){.top = NULL};
}

static int
add_sample(PyCodeObject *code, int offset, void *unused)
{
    (void)unused;
    if (sample.frames == FRAMES) {
        return 1;
    }
    sample.frame[sample.frames++] = (struct position){code, offset};
    return 0;
}

static void
take_sample(const struct plus_thread *holder)
{
    struct plus_frames frames = frames_of((unsigned long)holder->ident);

    sample.frames = 0;
    plus_frames_each(&frames, add_sample, NULL);
}

/* Takes over the line of the sample in the innermost function that still runs, and leaves out what it has called since.
 * Compares from the outermost frame on; stacks that were cut are left alone. */
static void
use_sample(struct record *record)
{
    size_t common = 0, all = record->frames;

    if (sample.frames == FRAMES || all == FRAMES) {
        return;
    }
    while (common < all && common < sample.frames &&
           record->frame[all - 1u - common].code ==
               sample.frame[sample.frames - 1u - common].code) {
        common++;
    }
    if (common == 0) {
        return;
    }
    size_t inner = all - common;
    for (size_t i = 0; i < inner; i++) {
        plus_compat_count((PyObject *)record->frame[i].code, -1); /* its frame has another one */
    }
    for (size_t i = 0; i < common; i++) {
        record->frame[i] = record->frame[inner + i];
        record->frame[i].offset = sample.frame[sample.frames - common + i].offset;
    }
    record->frames = common;
}

/* Begins a record with the stack; NULL: there is no room.  tstate: NULL if the thread ends with this release. */
static struct record *
new_record(const struct plus_thread *holder, const struct plus_stall *stall, PyThreadState *tstate)
{
    if (recorded == RECORDS) {
        lost++;
        return NULL;
    }
    struct record *record = &records[recorded++];
    *record = (struct record){
        .stall = *stall,
        .ended_ns = plus_now_ns(),
        .ident = (unsigned long)holder->ident,
        .native_id = holder->native_id,
    };
    if (tstate != NULL && is_of_main_interpreter(tstate)) {
        struct plus_frames frames = plus_frames_of_thread(tstate);
        plus_frames_each(&frames, add_frame, record);
    }
    return record;
}

static void
note_ended(const struct plus_thread *holder, const struct plus_stall *stall)
{
    struct record *record = new_record(holder, stall, PyGILState_GetThisThreadState());

    if (record != NULL && stall->sampled) {
        use_sample(record);
    }
}

/* The owners of locks for which a thread has waited for long, until they let go.  With the GIL. */
#define LOOKS 16u
static struct look {
    const void *lock;    /* NULL: the place is free; its record may have references */
    struct record owner; /* the stack; `stall` adds up the threads that have given up */
    uint64_t since_ns;   /* when the first of these began to wait */
} looks[LOOKS];

static struct look *
look_of(const void *lock)
{
    for (size_t i = 0; i < LOOKS; i++) {
        if (looks[i].lock == lock) {
            return &looks[i];
        }
    }
    return NULL;
}

static void
note_owner(struct plus_thread *thread, void *argument)
{
    struct record *record = argument;

    record->ident = (unsigned long)thread->ident;
    record->native_id = thread->native_id;
}

void
plus_stalls_look(const void *lock, uint64_t owner)
{
    struct look *look = look_of(lock);

    if (look != NULL || records == NULL || !is_of_main_interpreter(PyThreadState_Get())) {
        return;
    }
    look = look_of(NULL);
    if (look == NULL) {
        return; /* so many locks are waited for that others tell enough */
    }
    struct look before = *look;
    *look = (struct look){.lock = lock, .since_ns = UINT64_MAX};
    plus_threads_visit_one(owner, note_owner, &look->owner);
    if (look->owner.ident != 0) {
        struct plus_frames frames = frames_of(look->owner.ident);
        plus_frames_each(&frames, add_frame, &look->owner);
    }
    for (size_t i = 0; i < before.owner.frames; i++) {
        Py_DECREF(before.owner.frame[i].code);
    }
}

void
plus_stalls_gave_up(const void *lock, uint64_t since_ns)
{
    uint64_t limit_ns = plus_sched_stall_ns();
    struct look *look = limit_ns != UINT64_MAX ? look_of(lock) : NULL;
    uint64_t waited_ns = look != NULL ? plus_now_ns() - since_ns : 0;

    if (look == NULL || waited_ns < limit_ns) {
        return;
    }
    look->owner.stall.waiters++;
    look->owner.stall.waited_ns += waited_ns;
    look->since_ns = since_ns < look->since_ns ? since_ns : look->since_ns;
}

void
plus_stalls_forget_lock(const void *lock)
{
    struct look *look = look_of(lock);

    if (look != NULL) {
        look->lock = NULL;
    }
}

void
plus_stalls_note_lock(const void *lock, const struct plus_stall *waiting, uint64_t held_ns,
                      PyObject *made_by, int made_at)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct plus_thread *self = plus_thread_try_self();
    const struct look *look = look_of(lock);
    struct plus_stall stall = *waiting;

    plus_stalls_forget_lock(lock);
    if (self == NULL || !is_of_main_interpreter(tstate)) {
        return;
    }
    if (look != NULL && look->owner.native_id != self->native_id) {
        look = NULL; /* an earlier owner */
    }
    if (look != NULL && look->owner.stall.waiters > 0) {
        uint64_t longest_ns = plus_now_ns() - look->since_ns;
        uint64_t hold_ns = held_ns < longest_ns ? held_ns : longest_ns;
        stall.waiters += look->owner.stall.waiters;
        stall.waited_ns += look->owner.stall.waited_ns;
        stall.hold_ns = hold_ns > stall.hold_ns ? hold_ns : stall.hold_ns;
    }
    if (stall.waiters == 0) {
        return;
    }
    self->stalls++;
    size_t frames = look != NULL ? look->owner.frames : 0;
    struct record *record = new_record(self, &stall, frames == 0 ? tstate : NULL);
    if (record == NULL) {
        return;
    }
    record->of_lock = true;
    record->made = (struct position){(PyCodeObject *)Py_XNewRef(made_by), made_at};
    for (size_t i = 0; i < frames; i++) {
        add_frame(look->owner.frame[i].code, look->owner.frame[i].offset, record);
    }
}

struct line {
    char *text;
    size_t used, size;
    unsigned frames;
};

static int
write_frame(PyCodeObject *code, int offset, void *argument)
{
    struct line *line = argument;
    PyObject *file = code->co_filename, *name = code->co_qualname;

    /* Other strings would have to be encoded, which makes an object. */
    if (!PyUnicode_IS_COMPACT_ASCII(file) || !PyUnicode_IS_COMPACT_ASCII(name) ||
        line->frames == 8u) {
        return 1;
    }
    int length = snprintf(line->text + line->used, line->size - line->used, "%s%.200s:%d (%.80s)",
                          line->frames++ > 0 ? " < " : "", (const char *)PyUnicode_DATA(file),
                          plus_frames_line(code, offset), (const char *)PyUnicode_DATA(name));
    line->used += length > 0 ? (size_t)length : 0;
    return line->used + 320u > line->size;
}

static size_t
describe_lasting(const struct plus_thread *holder, uint64_t hold_ns, char *text, size_t size)
{
    struct line line = {.text = text, .size = size - 1u};

    line.used = (size_t)snprintf(
        text, size,
        "cpythonplus: process %d: thread %d has kept the GIL for %.1f s, and others wait: ",
        (int)getpid(), (int)holder->native_id, (double)hold_ns / 1e9);
    if (atomic_load(&holder->atomic_depth) == 0) {
        struct plus_frames frames = frames_of((unsigned long)holder->ident);
        plus_frames_each(&frames, write_frame, &line);
    }
    line.text[line.used++] = '\n';
    return line.used;
}

static void
nothing_to_do(void)
{
}

/* The parent's records are the parent's to tell. */
static void
after_fork_child(void)
{
    recorded = lost = 0;
    memset(looks, 0, sizeof(looks));
}

static const struct plus_fork_hooks fork_hooks = {nothing_to_do, nothing_to_do, after_fork_child};

/* Returns 0, or -1 with an exception. */
static int
make_room(void)
{
    if (records != NULL) {
        return 0;
    }
    int rc = plus_fork_register(&fork_hooks);
    if (rc < 0) {
        plus_raise_errno("pthread_atfork", -rc);
        return -1;
    }
    records = calloc(RECORDS, sizeof(*records));
    if (records == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static PyObject *
gil_watch_stalls(PyObject *module, PyObject *args)
{
    unsigned long long limit_us, lasting_ms;
    struct plus_stall_watch watch = {UINT64_MAX, UINT64_MAX,  UINT64_MAX,
                                     note_ended, take_sample, describe_lasting};

    if (!PyArg_ParseTuple(args, "KK:gil_watch_stalls", &limit_us, &lasting_ms)) {
        return NULL;
    }
    /* Unread frames would make a record without a place, which helps nobody. */
    if (plus_fact_refusal(PLUS_FACT_FRAMES) != NULL ||
        plus_fact_refusal(PLUS_FACT_THREAD_STATE) != NULL ||
        PyInterpreterState_Get() != PyInterpreterState_Main()) {
        Py_RETURN_FALSE;
    }
    if (make_room() < 0) {
        return NULL;
    }
    if (limit_us > 0) {
        watch.limit_ns = limit_us * PLUS_NS_PER_US;
        watch.sample_ns = watch.limit_ns / 2u;
        watch.lasting_ns = lasting_ms * PLUS_NS_PER_MS;
    }
    plus_control_lock();
    plus_sched_watch_stalls(&watch);
    plus_control_unlock();
    Py_RETURN_TRUE;
}

static PyObject *
place_of(const struct position *at)
{
    return Py_BuildValue("(OiO)", at->code->co_filename, plus_frames_line(at->code, at->offset),
                         at->code->co_qualname);
}

static PyObject *
stack_of(const struct record *record)
{
    PyObject *stack = PyTuple_New((Py_ssize_t)record->frames);

    for (size_t i = 0; stack != NULL && i < record->frames; i++) {
        PyObject *place = place_of(&record->frame[record->frames - 1u - i]);
        if (place == NULL) {
            Py_CLEAR(stack);
            break;
        }
        PyTuple_SET_ITEM(stack, (Py_ssize_t)i, place);
    }
    return stack;
}

static PyObject *
stall_of(const struct record *record, uint64_t now)
{
    PyObject *stack = stack_of(record);
    PyObject *made = record->made.code != NULL ? place_of(&record->made) : Py_NewRef(Py_None);
    const char *kind = record->of_lock ? "lock" : record->stall.atomic ? "atomic" : "C";

    if (stack == NULL || made == NULL) {
        Py_XDECREF(stack);
        Py_XDECREF(made);
        return NULL;
    }
    return Py_BuildValue("(KkiKKIsNN)", (unsigned long long)(now - record->ended_ns), record->ident,
                         (int)record->native_id, (unsigned long long)record->stall.hold_ns,
                         (unsigned long long)record->stall.waited_ns,
                         (unsigned)record->stall.waiters, kind, stack, made);
}

static PyObject *
gil_take_stalls(PyObject *module, PyObject *ignored)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return Py_BuildValue("([]i)", 0);
    }
    size_t count = recorded, were_lost = lost;
    struct record *taken = malloc((count + 1u) * sizeof(*taken));
    PyObject *list;

    if (taken == NULL) {
        return PyErr_NoMemory();
    }
    /* Making objects may give the GIL up, and stall. */
    for (size_t i = 0; i < count; i++) {
        taken[i] = records[i];
    }
    recorded = lost = 0;
    uint64_t now = plus_now_ns();
    list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        plus_append_row(&list, stall_of(&taken[i], now));
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < taken[i].frames; j++) {
            Py_DECREF(taken[i].frame[j].code);
        }
        Py_XDECREF(taken[i].made.code);
    }
    free(taken);
    return list == NULL ? NULL : Py_BuildValue("(Nn)", list, (Py_ssize_t)were_lost);
}

/* The functions that start threads of ours again; set for good, by the main interpreter. */
#define STARTERS 4u
static PyObject *starters[STARTERS];

static void
start_again(void)
{
    for (size_t i = 0; i < STARTERS && starters[i] != NULL; i++) {
        PyObject *done = PyObject_CallNoArgs(starters[i]);

        if (done == NULL) {
            PyErr_WriteUnraisable(starters[i]);
        }
        Py_XDECREF(done);
    }
}

static PyObject *
gil_behind_fork(PyObject *module, PyObject *function)
{
    size_t i = 0;

    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        Py_RETURN_NONE;
    }
    while (i < STARTERS && starters[i] != NULL && starters[i] != function) {
        i++;
    }
    if (i == STARTERS) {
        PyErr_BadInternalCall();
        return NULL;
    }
    if (starters[i] == NULL) {
        starters[i] = Py_NewRef(function);
    }
    plus_behind_fork(start_again);
    Py_RETURN_NONE;
}

PyMethodDef plus_stalls_methods[] = {
    PLUS_METHOD("gil_behind_fork", gil_behind_fork, METH_O, "$module, function, /",
                "For an after_in_parent: call the function, and earlier ones, once os.fork has "
                "returned."),
    PLUS_METHOD("gil_watch_stalls", gil_watch_stalls, METH_VARARGS,
                "$module, limit_us, lasting_ms, /",
                "Record holds of the GIL for which another thread has waited so long; 0: none.\n\n"
                "Returns False in a subinterpreter, and where frames cannot be read."),
    PLUS_METHOD("gil_take_stalls", gil_take_stalls, METH_NOARGS, "$module, /",
                "Return the stalls since the last call, and how many more there were."),
    {NULL, NULL, 0, NULL},
};
