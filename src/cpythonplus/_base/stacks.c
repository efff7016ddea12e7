/* The binding; see stacks.h. */
#include "stacks.h"
#include "methods.h"

static PyObject *
without_collection(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 0) {
        PyErr_SetString(PyExc_TypeError, "a function is missing");
        return NULL;
    }
    int collects = PyGC_Disable();
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(nargs - 1), NULL);

    if (collects) {
        PyGC_Enable();
    }
    return result;
}

static PyObject *
list_outwards(PyFrameObject *frame)
{
    PyObject *found = PyList_New(0);

    Py_XINCREF(frame);
    while (found != NULL && frame != NULL) {
        if (PyList_Append(found, (PyObject *)frame) != 0) {
            Py_CLEAR(found);
        }
        /* From 3.12 on NULL with an exception, where there is no memory for the object. */
        Py_SETREF(frame, PyFrame_GetBack(frame));
        if (PyErr_Occurred()) {
            Py_CLEAR(found);
        }
    }
    Py_XDECREF(frame);
    return found;
}

static PyObject *
outwards(PyObject *Py_UNUSED(module), PyObject *frame)
{
    if (frame != Py_None && !PyFrame_Check(frame)) {
        return PyErr_Format(PyExc_TypeError, "a frame or None, not %.200s",
                            Py_TYPE(frame)->tp_name);
    }
    int collects = PyGC_Disable();
    PyObject *found = list_outwards(frame != Py_None ? (PyFrameObject *)frame : NULL);

    if (collects) {
        PyGC_Enable();
    }
    return found;
}

PyMethodDef plus_stacks_methods[] = {
    PLUS_METHOD_KW("stacks_without_collection", without_collection, METH_FASTCALL,
                   "$module, function, /, *args",
                   "Call a function that runs no Python code, while no collection can begin."),
    PLUS_METHOD("stacks_outwards", outwards, METH_O, "$module, frame, /",
                "Return a frame and its callers, innermost first; [] for None."),
    {NULL, NULL, 0, NULL},
};
