/* The profile of the GIL: an observer of the scheduler that charges each hold and each wait to a Python stack.
 *
 * A hold is charged to the stack at which it ended, a wait to the stack of the thread that waited.  The observer reads
 * the thread's own frames; that costs some nanoseconds a frame, once for each hold: a wait takes the row of the hold
 * before it.  Holds of a thread that is alone are not timed, so they are not charged.
 *
 * `left` counts down, so that a profile whose reader is gone (`top` was killed) ends by itself. */
#include "../../_interp/frames/frames.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../_base/rows.h"
#include "../../gil/control.h"
#include "../../gil/scheduler/sched.h"
#include "../binding.h"
#include "stacks.h"

/* Guarded by the GIL, like the rows. */
static uint64_t left;
static bool observes;

static void
observe(enum plus_observed what, uint64_t ns, uint32_t *mark)
{
    if (left == 0) {
        return;
    }
    left--;
    if (what == PLUS_OBSERVED_HOLD || *mark == 0) {
        *mark = plus_stacks_here();
    }
    struct plus_stack_times *times = &plus_stacks_row(*mark)->times[what];
    times->count++;
    times->total_ns += ns;
    if (ns > times->longest_ns) {
        times->longest_ns = ns;
    }
}

static void
set_observer(plus_observer observer)
{
    plus_control_lock();
    plus_sched_observe(observer);
    plus_control_unlock();
    observes = observer != NULL;
}

static PyObject *
gil_profile_start(PyObject *module, PyObject *arg)
{
    unsigned long long count = PyLong_AsUnsignedLongLong(arg);

    if (count == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    const char *refusal = plus_fact_refusal(PLUS_FACT_FRAMES);
    if (refusal != NULL) {
        return plus_raise_unsupported(refusal);
    }
    int error = plus_stacks_begin();
    if (error < 0) {
        return plus_raise_errno("mmap", -error);
    }
    left = count > left ? count : left;
    if (!observes) {
        set_observer(observe);
    }
    Py_RETURN_NONE;
}

static PyObject *
gil_profile_stop(PyObject *module, PyObject *unused)
{
    left = 0;
    set_observer(NULL);
    return plus_stacks_clear() ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *
times_of(const struct plus_stack_times *times)
{
    return Py_BuildValue("(KKK)", (unsigned long long)times->count,
                         (unsigned long long)times->total_ns,
                         (unsigned long long)times->longest_ns);
}

static PyObject *
gil_profile_rows(PyObject *module, PyObject *unused)
{
    uint32_t count = plus_stacks_count();
    PyObject *rows = PyList_New(0);

    for (uint32_t i = 0; i < count && rows != NULL; i++) {
        struct plus_stack row = *plus_stacks_row(i);
        plus_append_row(&rows, Py_BuildValue("(INN)", i, times_of(&row.times[PLUS_OBSERVED_HOLD]),
                                             times_of(&row.times[PLUS_OBSERVED_WAIT])));
    }
    return rows;
}

static PyObject *
gil_profile_stack(PyObject *module, PyObject *arg)
{
    unsigned long number = PyLong_AsUnsignedLong(arg);
    struct plus_stack_frame frames[PLUS_STACK_DEPTH];

    if (number == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    if (number >= plus_stacks_count()) {
        PyErr_SetNone(PyExc_IndexError);
        return NULL;
    }
    /* Making objects may run the collector and so other threads, which may clear the rows: copy and hold first. */
    struct plus_stack row = *plus_stacks_row((uint32_t)number);
    for (uint32_t i = 0; i < row.depth; i++) {
        frames[i] = row.frames[i];
        Py_INCREF(frames[i].code);
    }
    PyObject *result = PyList_New(0);
    for (uint32_t i = 0; i < row.depth; i++) {
        plus_append_row(&result, Py_BuildValue("(Oi)", frames[i].code, frames[i].offset));
        Py_DECREF(frames[i].code);
    }
    return result == NULL ? NULL : Py_BuildValue("(NO)", result, row.is_cut ? Py_True : Py_False);
}

static PyObject *
gil_profile_line(PyObject *module, PyObject *args)
{
    PyObject *code;
    int offset;

    if (!PyArg_ParseTuple(args, "O!i:gil_profile_line", &PyCode_Type, &code, &offset)) {
        return NULL;
    }
    return PyLong_FromLong(plus_frames_line((PyCodeObject *)code, offset));
}

PyMethodDef plus_gil_profile_methods[] = {
    PLUS_METHOD("gil_profile_start", gil_profile_start, METH_O, "$module, count, /",
                "Charge holds and waits to stacks, for at least so many of them."),
    {"gil_profile_stop", gil_profile_stop, METH_NOARGS,
     PyDoc_STR("gil_profile_stop($module, /)\n--\n\nEnd the profile and forget it.")},
    PLUS_METHOD(
        "gil_profile_rows", gil_profile_rows, METH_NOARGS, "$module, /",
        "Return (number, holds, waits) of each stack; both are (count, total_ns, longest_ns).\n\n"
        "Stack 0 has what found no room."),
    PLUS_METHOD("gil_profile_stack", gil_profile_stack, METH_O, "$module, number, /",
                "Return ([(code, offset), ...], is_cut), innermost first."),
    {"gil_profile_line", gil_profile_line, METH_VARARGS,
     PyDoc_STR("gil_profile_line($module, code, offset, /)\n--\n\nReturn the source line.")},
    {NULL, NULL, 0, NULL},
};
