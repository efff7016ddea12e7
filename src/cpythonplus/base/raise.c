#include "raise.h"

#include <string.h>

PyObject *
plus_raise_unsupported(const char *reason)
{
    PyObject *module = PyImport_ImportModule("cpythonplus.base.errors");
    PyObject *type = NULL;

    if (module != NULL) {
        type = PyObject_GetAttrString(module, "UnsupportedPlatform");
        Py_DECREF(module);
    }
    if (type != NULL) {
        PyErr_SetString(type, reason);
        Py_DECREF(type);
    }
    return NULL;
}

PyObject *
plus_raise_errno(const char *call, int error)
{
    PyObject *arguments = Py_BuildValue("(is)", error, strerror(error));

    if (arguments == NULL) {
        return NULL;
    }
    PyObject *exception = PyObject_CallObject(PyExc_OSError, arguments);
    Py_DECREF(arguments);
    if (exception != NULL) {
        PyErr_Format(PyExc_OSError, "%s failed: %S", call, exception);
        Py_DECREF(exception);
    }
    return NULL;
}
