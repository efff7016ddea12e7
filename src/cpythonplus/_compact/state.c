/* See state.h. */
#include "state.h"

#define REFERENCES (sizeof(struct plus_compact_state) / sizeof(PyObject *))

int
plus_compact_state_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **references = (PyObject **)plus_compact_state(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_VISIT(references[i]);
    }
    return 0;
}

int
plus_compact_state_clear(PyObject *module)
{
    PyObject **references = (PyObject **)plus_compact_state(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_CLEAR(references[i]);
    }
    return 0;
}
