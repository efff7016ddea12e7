#include "probe_call.h"

#define SOURCE                                                                                     \
    "def probe(first, look):\n"                                                                    \
    "    second = first\n"                                                                         \
    "    return first, look(first, second)\n"

struct going_on {
    void (*look)(const struct plus_probe_call *call, void *arg);
    void *arg;
    struct plus_probe_call call;
};

static PyObject *
look(PyObject *capsule, PyObject *args)
{
    struct going_on *it = PyCapsule_GetPointer(capsule, NULL);

    if (it == NULL) {
        return NULL;
    }
    it->look(&it->call, it->arg);
    return PyErr_Occurred() != NULL ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef look_method = {"look", look, METH_VARARGS, NULL};

PyObject *
plus_probe_function(const char *source)
{
    PyObject *code = Py_CompileString(source, PLUS_PROBE_FILE, Py_file_input);
    PyObject *globals = PyDict_New(), *function = NULL;

    if (code != NULL && globals != NULL &&
        PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0) {
        PyObject *done = PyEval_EvalCode(code, globals, globals);
        function = done == NULL ? NULL : Py_XNewRef(PyDict_GetItemString(globals, "probe"));
        Py_XDECREF(done);
        /* Break the cycle, so that the program's search for garbage does not find it. */
        PyDict_Clear(globals);
    }
    Py_XDECREF(globals);
    Py_XDECREF(code);
    return function;
}

int
plus_probe_call(void (*callback)(const struct plus_probe_call *call, void *arg), void *arg)
{
    struct going_on it = {callback, arg};
    PyObject *capsule = PyCapsule_New(&it, NULL, NULL), *function = plus_probe_function(SOURCE),
             *result = NULL;

    it.call.first = PyList_New(0);
    it.call.callable = capsule == NULL ? NULL : PyCFunction_New(&look_method, capsule);
    if (function != NULL && it.call.first != NULL && it.call.callable != NULL) {
        it.call.code = (PyCodeObject *)PyFunction_GET_CODE(function);
        result = PyObject_CallFunctionObjArgs(function, it.call.first, it.call.callable, NULL);
    }
    int status = result == NULL ? -1 : 0;

    Py_XDECREF(result);
    Py_XDECREF(it.call.callable);
    Py_XDECREF(it.call.first);
    Py_XDECREF(function);
    Py_XDECREF(capsule);
    return status;
}
