/* What exceptions.py needs of C: frames without variables, and raising. */
#include "helpers.h"

#include <frameobject.h>

#include "frame_locals.h"

PyObject *
plus_memory_bare_frame(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    PyObject *names;

    if (!PyArg_ParseTuple(args, "O!O!:memory_bare_frame", &PyCode_Type, &code, &PyDict_Type,
                          &names)) {
        return NULL;
    }
    /* Whoever reads the frame's variables would look for its cells. */
    if (PyCode_GetNumFree(code) > 0) {
        PyErr_SetString(PyExc_ValueError, "the code has free variables");
        return NULL;
    }
    return (PyObject *)PyFrame_New(PyThreadState_Get(), code, names, NULL);
}

PyObject *
plus_memory_frame_generator(PyObject *module, PyObject *frame)
{
    if (!PyFrame_Check(frame)) {
        return PyErr_Format(PyExc_TypeError, "memory_frame_generator() takes a frame, not %.200s",
                            Py_TYPE(frame)->tp_name);
    }
    PyObject *generator = PyFrame_GetGenerator((PyFrameObject *)frame);
    return generator == NULL ? Py_NewRef(Py_None) : generator;
}

/* Not written in Python: its frame would be on the traceback, and the caller's operands could not be
 * relied on to let go of the exception. */
PyObject *
plus_memory_reraise(PyObject *module, PyObject *raised)
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
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    if (caller != NULL) {
        plus_frame_forget(caller, raised); /* the exception that is set keeps it */
    }
    return NULL;
}
