/* See state.h. */
#include "state.h"

#define REFERENCES (sizeof(struct plus_memory_state) / sizeof(PyObject *))

int
plus_memory_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **references = (PyObject **)plus_memory_state(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_VISIT(references[i]);
    }
    return 0;
}

int
plus_memory_clear(PyObject *module)
{
    PyObject **references = (PyObject **)plus_memory_state(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_CLEAR(references[i]);
    }
    return 0;
}
