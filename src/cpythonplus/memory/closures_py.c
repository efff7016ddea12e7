/* What closures.py needs of C. */
#include "helpers.h"
#include "islands.h"

PyObject *
plus_memory_close_cells(PyObject *module, PyObject *args)
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
