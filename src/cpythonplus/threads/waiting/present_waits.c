/* Reads the notes of all threads in one go: first addresses, under the lock of the registry, where no object may be made;
 * then objects.  The GIL is held from the first to the last step that reads a note. */
#include "../state.h"

#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_base/process/futex.h"
#include "../../_base/raise.h"
#include "../../_base/rows.h"
#include "../../_interp/facts/facts.h"
#include "../../_interp/frames/frames.h"
#include "present_waits.h"

/* A thread, and the wait that it has noted. */
struct row {
    uint64_t serial;
    unsigned long ident;
    bool waits;
    PyObject *object;
    const char *doing;
    uint64_t start_ns, deadline_ns, owner;
    bool owned; /* what it waits for has an owner word */
};

struct rows {
    struct row *row;
    size_t count, room;
};

static void
note_row(struct plus_thread *thread, void *argument)
{
    struct rows *rows = argument;
    const struct plus_present_wait *wait = thread->present_wait;

    if (rows->count == rows->room) {
        return; /* it began after the count */
    }
    struct row *row = &rows->row[rows->count++];
    *row = (struct row){.serial = thread->serial, .ident = (unsigned long)thread->ident};
    if (wait == NULL) {
        return;
    }
    const struct plus_waiter *waiter = wait->waiter;
    uint32_t state = atomic_load(&waiter->state);
    row->waits = state == PLUS_WAITER_WAITING || state == PLUS_WAITER_ASLEEP;
    row->object = (PyObject *)waiter->object;
    row->doing = waiter->doing;
    row->start_ns = waiter->start_ns;
    row->deadline_ns = wait->deadline_ns;
    row->owned = waiter->owner != NULL;
    row->owner = row->owned ? atomic_load(waiter->owner) : 0;
}

/* The ident of the thread with this identity; 0: no thread that runs has it. */
static unsigned long
ident_of(const struct rows *rows, uint64_t serial)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->row[i].serial == serial) {
            return rows->row[i].ident;
        }
    }
    return 0;
}

static PyObject *
tuple_of(const struct rows *rows, const struct row *row, uint64_t now)
{
    PyObject *owner =
        row->owned ? PyLong_FromUnsignedLong(ident_of(rows, row->owner)) : Py_NewRef(Py_None);

    if (owner == NULL) {
        return NULL;
    }
    return Py_BuildValue("(kOsKON)", row->ident, row->object != NULL ? row->object : Py_None,
                         row->doing != NULL ? row->doing : "",
                         (unsigned long long)(now > row->start_ns ? now - row->start_ns : 0),
                         row->deadline_ns != PLUS_FUTEX_NO_DEADLINE ? Py_True : Py_False, owner);
}

/* Fills `list`.  The objects get references first: making a tuple may run the garbage collector. */
static int
tell(const struct rows *rows, PyObject *list)
{
    uint64_t now = plus_now_ns();
    int failed = 0;

    for (size_t i = 0; i < rows->count; i++) {
        Py_XINCREF(rows->row[i].object);
    }
    for (size_t i = 0; i < rows->count && !failed; i++) {
        const struct row *row = &rows->row[i];

        /* A lock without an owner was released just now. */
        if (row->waits && (!row->owned || row->owner != 0)) {
            failed = plus_append_new(list, tuple_of(rows, row, now));
        }
    }
    for (size_t i = 0; i < rows->count; i++) {
        Py_XDECREF(rows->row[i].object);
    }
    return failed ? -1 : 0;
}

static PyObject *
present_waits(PyObject *module, PyObject *ignored)
{
    /* Threads that end with the interpreter have left their notes on stacks that are gone. */
    if (plus_compat_is_finalizing() || PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return PyList_New(0);
    }
    PyObject *list = PyList_New(0);
    struct rows rows = {.room = plus_threads_count()};

    rows.row = calloc(rows.room + 1, sizeof(*rows.row));
    if (list == NULL || rows.row == NULL) {
        Py_XDECREF(list);
        free(rows.row);
        return list == NULL ? NULL : PyErr_NoMemory();
    }
#ifndef Py_GIL_DISABLED
    plus_threads_visit(note_row, &rows);
#endif
    if (tell(&rows, list) < 0) {
        Py_CLEAR(list);
    }
    free(rows.row);
    return list;
}

/* The number of threads that this interpreter knows, also of those that run no Python code yet. */
static PyObject *
count_states(PyObject *module, PyObject *ignored)
{
    long count = 0;

    for (PyThreadState *each = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
         each != NULL; each = PyThreadState_Next(each)) {
        count++;
    }
    return PyLong_FromLong(count);
}

/* The caller has read the offset in Python code, and the frame's thread may have run since: an operand that was popped
 * then may be freed.  So the offset is compared here, next to the read. */
static PyObject *
frame_operand(PyObject *module, PyObject *args)
{
    PyObject *frame;
    int index, offset;

    if (!PyArg_ParseTuple(args, "O!ii", &PyFrame_Type, &frame, &index, &offset)) {
        return NULL;
    }
    PyFrameObject *object = (PyFrameObject *)frame;
    PyObject *found =
        plus_fact_refusal(PLUS_FACT_FRAMES) == NULL && PyFrame_GetLasti(object) == offset
            ? plus_frames_operand(object, index)
            : NULL;
    return found != NULL ? found : Py_NewRef(Py_None);
}

#ifndef Py_GIL_DISABLED
/* An owner that has never waited has a record too, or nobody could say who it is. */
static void
note_thread(void)
{
    (void)plus_thread_try_self();
}
#endif

static PyMethodDef methods[] = {
    PLUS_METHOD(
        "threads_present_waits", present_waits, METH_NOARGS, "$module, /",
        "Return (ident, object, method, waited_ns, has a deadline, owner) of each thread that\n"
        "waits; owner: an ident, 0: a thread that is not known, None: there is no owner."),
    PLUS_METHOD("threads_count_states", count_states, METH_NOARGS, "$module, /",
                "Return the number of threads, with those that run no Python code."),
    PLUS_METHOD(
        "threads_operand", frame_operand, METH_VARARGS, "$module, frame, index, offset, /",
        "Return an operand that the code says is there at this offset (f_lasti), or None: also\n"
        "if the frame has gone on."),
    {NULL, NULL, 0, NULL},
};

int
plus_present_waits_exec(PyObject *module, struct plus_threads_state *state)
{
    int rc = plus_threads_init();

    (void)state;
    if (rc < 0) {
        plus_raise_errno("pthread_key_create", -rc);
        return -1;
    }
#ifndef Py_GIL_DISABLED
    plus_identity_on_make(note_thread);
#endif
    return PyModule_AddFunctions(module, methods);
}
