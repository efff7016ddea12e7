/* What pickle and copy call of tasklets, channels and bombs goes on in Python: _pickling.py, loaded at the first call. */
#include "pickle_calls.h"

static PyObject *
call_python(const char *name, PyObject *op, PyObject *more)
{
    PyObject *module = PyImport_ImportModule("cpythonplus.tasklets._pickling");
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    PyObject *result =
        function == NULL ? NULL : PyObject_CallFunctionObjArgs(function, op, more, NULL);

    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *
plus_tasklet_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_tasklet", op, NULL);
}

PyObject *
plus_tasklet_set_state(PyObject *op, PyObject *state)
{
    return call_python("set_tasklet_state", op, state);
}

PyObject *
plus_tasklet_copy(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("copy_tasklet", op, NULL);
}

PyObject *
plus_channel_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_channel", op, NULL);
}

PyObject *
plus_channel_set_state(PyObject *op, PyObject *state)
{
    return call_python("set_channel_state", op, state);
}

PyObject *
plus_bomb_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("reduce_bomb", op, NULL);
}
