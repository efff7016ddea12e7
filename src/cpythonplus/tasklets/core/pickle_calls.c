/* The methods of tasklets, channels and bombs that pickle and copy call.  They call Python functions of
 * _pickling/reducing.py and _pickling/copying.py, which are loaded at the first call. */
#include "pickle_calls.h"

#define PICKLING "cpythonplus.tasklets._pickling.reducing"

static PyObject *
call_python(const char *module_name, const char *name, PyObject *op, PyObject *more)
{
    PyObject *module = PyImport_ImportModule(module_name);
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
    return call_python(PICKLING, "reduce_tasklet", op, NULL);
}

PyObject *
plus_tasklet_set_state(PyObject *op, PyObject *state)
{
    return call_python(PICKLING, "set_tasklet_state", op, state);
}

PyObject *
plus_tasklet_copy(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python("cpythonplus.tasklets._pickling.copying", "copy_tasklet", op, NULL);
}

PyObject *
plus_tasklet_deepcopy(PyObject *op, PyObject *memo)
{
    return call_python("cpythonplus.tasklets._pickling.copying", "deepcopy_tasklet", op, memo);
}

PyObject *
plus_channel_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python(PICKLING, "reduce_channel", op, NULL);
}

PyObject *
plus_channel_set_state(PyObject *op, PyObject *state)
{
    return call_python(PICKLING, "set_channel_state", op, state);
}

PyObject *
plus_bomb_reduce(PyObject *op, PyObject *ignored)
{
    (void)ignored;
    return call_python(PICKLING, "reduce_bomb", op, NULL);
}
