/* The methods of tasklets, channels and bombs that pickle and copy call.  They call Python functions of
 * _pickling/reducing.py and _pickling/copying.py, which are loaded at the first call. */
#include "pickle_calls.h"

static PyObject *
call_python(const char *module_name, const char *name, PyObject *op, PyObject *arg)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    PyObject *result =
        function == NULL ? NULL : PyObject_CallFunctionObjArgs(function, op, arg, NULL);

    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

/* `arg` is NULL for a method without arguments. */
#define PYTHON_METHOD(name, file, function)                                                        \
    PyObject *plus_##name(PyObject *op, PyObject *arg)                                             \
    {                                                                                              \
        return call_python("cpythonplus.tasklets._pickling." file, function, op, arg);             \
    }

PYTHON_METHOD(tasklet_reduce, "reducing", "reduce_tasklet")
PYTHON_METHOD(tasklet_set_state, "reducing", "set_tasklet_state")
PYTHON_METHOD(tasklet_copy, "copying", "copy_tasklet")
PYTHON_METHOD(tasklet_deepcopy, "copying", "deepcopy_tasklet")
PYTHON_METHOD(channel_reduce, "reducing", "reduce_channel")
PYTHON_METHOD(channel_set_state, "reducing", "set_channel_state")
PYTHON_METHOD(bomb_reduce, "reducing", "reduce_bomb")
