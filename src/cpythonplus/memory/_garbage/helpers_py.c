/* Helpers of exceptions.py and closures.py: frames without variables, raising, and emptying cells. */
#include "../binding.h"

#include "../../_base/methods.h"

#include <frameobject.h>

#include "../../_interp/facts/facts.h"
#include "../../_interp/frames/frame_variables.h"
#include "held.h"

static PyObject *
memory_bare_frame(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    PyObject *names;

    if (!PyArg_ParseTuple(args, "O!O!:memory_bare_frame", &PyCode_Type, &code, &PyDict_Type,
                          &names)) {
        return NULL;
    }
    /* A reader of the frame's variables would look for its cells. */
    if (PyCode_GetNumFree(code) > 0) {
        PyErr_SetString(PyExc_ValueError, "the code has free variables");
        return NULL;
    }
    return (PyObject *)PyFrame_New(PyThreadState_Get(), code, names, NULL);
}

static PyObject *
memory_frame_generator(PyObject *module, PyObject *frame)
{
    if (!PyFrame_Check(frame)) {
        return PyErr_Format(PyExc_TypeError, "memory_frame_generator() takes a frame, not %.200s",
                            Py_TYPE(frame)->tp_name);
    }
    PyObject *generator = PyFrame_GetGenerator((PyFrameObject *)frame);
    return generator == NULL ? Py_NewRef(Py_None) : generator;
}

/* Written in C: the frame of a Python function would be on the traceback, and the caller's operand stack might keep
 * the exception. */
static PyObject *
memory_reraise(PyObject *module, PyObject *raised)
{
    PyFrameObject *caller = PyEval_GetFrame();

    if (!PyExceptionInstance_Check(raised)) {
        PyObject *method = PyObject_GetAttrString(raised, "reraise");

        if (method == NULL) {
            return PyErr_Format(PyExc_TypeError,
                                "reraise() takes an exception or an Outcome, not %.200s",
                                Py_TYPE(raised)->tp_name);
        }
        PyObject *done = PyObject_CallNoArgs(method);
        Py_DECREF(method);
        return done;
    }
    bool forgets = caller != NULL && plus_fact_refusal(PLUS_FACT_FRAMES) == NULL;

    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    if (forgets) {
        plus_frame_forget(caller, raised); /* the exception that is set keeps `raised` */
    }
    return NULL;
}

static PyObject *
memory_close_cells(PyObject *module, PyObject *args)
{
    PyObject *closure, *frames;
    Py_ssize_t count;

    if (!PyArg_ParseTuple(args, "O!nO!:memory_close_cells", &PyTuple_Type, &closure, &count,
                          &PyList_Type, &frames)) {
        return NULL;
    }
    if (count < 0 || count > PyTuple_GET_SIZE(closure)) {
        PyErr_SetString(PyExc_ValueError, "count must be within the closure");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyCell_Check(PyTuple_GET_ITEM(closure, i))) {
            PyErr_SetString(PyExc_TypeError, "closure must be a tuple of cells");
            return NULL;
        }
    }
    return PyLong_FromSsize_t(plus_islands_close(closure, count, frames));
}

PyMethodDef plus_memory_helpers_methods[] = {
    PLUS_METHOD("memory_bare_frame", memory_bare_frame, METH_VARARGS, "$module, code, names, /",
                "Return a frame of `code` that never runs: no variables, no caller.\n\n"
                "names: the dict of its globals."),
    PLUS_METHOD("memory_frame_generator", memory_frame_generator, METH_O, "$module, frame, /",
                "Return the generator or coroutine that goes on with the frame, or None."),
    PLUS_METHOD(
        "reraise", memory_reraise, METH_O, "$module, raised, /",
        "Raise an exception, or that of an Outcome, without leaving a cycle behind.\n\n"
        "raised: the exception, or what `catch` returned; an Outcome without one does nothing.\n"
        "\n"
        "The variables of the calling function that are the exception, those of enclosing\n"
        "functions included, become None; an Outcome forgets it.  An attribute or a list that\n"
        "holds the exception goes on doing so: take it out (`reraise(errors.pop())`).  The\n"
        "traceback that it has is kept.  Raises TypeError for anything else."),
    PLUS_METHOD("memory_close_cells", memory_close_cells, METH_VARARGS,
                "$module, closure, count, frames, /",
                "Empty those of a closure's first `count` cells that only cycles keep.\n\n"
                "frames: finished ones, whose references do not count.  Returns how many."),
    PLUS_METHOD("memory_clear_weakrefs", plus_memory_clear_weakrefs, METH_VARARGS,
                "$module, op, call_callbacks, /",
                "Clear all weak references to `op`; returns how many there were."),
    {NULL, NULL, 0, NULL},
};
