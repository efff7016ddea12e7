/* Whether a tasklet can be pickled or copied, and its frames.
 *
 * A chain of frames ends in a call of a C function that has switched to another tasklet.  When the tasklet goes on from
 * its captured frames, that function does not: the call returns at once what the tasklet was given.  So it has to be a
 * function that does nothing else after the switch; those are known by their addresses (plus_capturing_ends_in).
 *
 * Called with the GIL held; nothing is changed, and the tasklet goes on unaffected.
 */
#include "capturing.h"

#include "../../_interp/saved_frames/frame_capture.h"
#include "../channels/channel.h"
#include "../scheduling/snapshot.h"

static PyCFunction ends[16];
static size_t end_count;

void
plus_capturing_ends_in(PyCFunction function)
{
    if (end_count < sizeof ends / sizeof ends[0]) {
        ends[end_count++] = function;
    }
}

static bool
is_end(PyObject *callable)
{
    PyCFunction function = NULL;

    if (PyCFunction_Check(callable)) {
        function = PyCFunction_GET_FUNCTION(callable);
    }
    else if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        function = ((PyMethodDescrObject *)callable)->d_method->ml_meth;
    }
    for (size_t i = 0; function != NULL && i < end_count; i++) {
        if (ends[i] == function) {
            return true;
        }
    }
    return false;
}

static bool
is_channel(PyObject *iterator)
{
    return iterator != NULL && PyObject_TypeCheck(iterator, &plus_channel_type) &&
           Py_TYPE(iterator)->tp_iternext == plus_channel_type.tp_iternext;
}

static const struct plus_capture_ends chain_ends = {is_end, is_channel};

static const enum plus_fact needed[] = {PLUS_FACT_FRAMES, PLUS_FACT_OPERANDS,
                                        PLUS_FACT_FRAME_BUILDING, PLUS_FACT_THREAD_STATE};

bool
plus_capturing_refused(PyObject *error)
{
    const char *refusal = plus_facts_refusal(needed, sizeof needed / sizeof needed[0]);

    if (refusal != NULL) {
        PyErr_Format(error, "tasklets cannot be pickled here: %s", refusal);
    }
    return refusal != NULL;
}

const char *
plus_capturing_why_not(const struct plus_tasklet *task)
{
    if (task->is_main) {
        return "the main tasklet of a thread cannot be pickled";
    }
    if (plus_is_running(task)) {
        return "a tasklet that is running cannot be pickled";
    }
    if (task->sched->tstate == NULL && task->started) {
        return "the thread of this tasklet has ended";
    }
    if (task->abandoned) {
        return "this tasklet was given up, and never goes on";
    }
    if (task->started && task->alive && task->func == NULL) { /* in a finaliser at its end */
        return "this tasklet is in C code only";
    }
    if (task->has_greenlets) {
        return "greenlets have been switched in this tasklet";
    }
    if (task->thrown != NULL || task->due != NULL) {
        return "this tasklet is about to raise an exception";
    }
    if (plus_called_run(task->sched, task)) {
        return "this tasklet has called run(), and waits for the others";
    }
    if (task->blocked && task->channel != NULL && task->channel->waits != NULL) {
        return "this tasklet waits for something outside of it, not for a channel";
    }
    return NULL;
}

/* Returns the frames of a tasklet that has begun. */
PyObject *
plus_capturing_frames(struct plus_tasklet *task, PyObject *error)
{
    struct plus_frames frames = plus_tasklet_frames(task);
    PyObject *called = plus_is_snapshot(task->func) ? NULL : task->func;
    PyObject *tuple = plus_frames_capture(&frames, called, &chain_ends, error);

    if (tuple != NULL && PyTuple_GET_SIZE(tuple) == 0) {
        PyErr_SetString(error, "this tasklet is in C code only");
        Py_CLEAR(tuple);
    }
    return tuple;
}

bool
plus_capturing_is_possible(struct plus_tasklet *task)
{
    /* It makes the function that stands for the call of a class. It may run any code, so it comes first. */
    PyObject *module = PyImport_ImportModule("cpythonplus.tasklets._pickling.reducing");

    if (module == NULL) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(module);
    if (plus_capturing_why_not(task) != NULL ||
        plus_facts_refusal(needed, sizeof needed / sizeof needed[0]) != NULL) {
        return false;
    }
    if (!task->alive || !task->started) {
        return true;
    }
    PyObject *frames = plus_capturing_frames(task, PyExc_ValueError);

    PyErr_Clear();
    Py_XDECREF(frames);
    return frames != NULL;
}
