/* See state.h. */
#include "state.h"

struct plus_threads_state *
plus_threads_state(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &plus_native_module);

    return module != NULL ? PyModule_GetState(module) : NULL;
}

int
plus_add_type(PyObject *module, PyTypeObject **made, const char *as, const char *name, size_t size,
              unsigned long flags, PyType_Slot *slots, PyTypeObject *base)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = (int)size,
        .flags = (unsigned)(Py_TPFLAGS_DEFAULT | flags),
        .slots = slots,
    };

    *made = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, (PyObject *)base);
    return *made != NULL ? PyModule_AddObjectRef(module, as, (PyObject *)*made) : -1;
}

void
plus_dealloc_by(PyObject *op, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    PyObject_ClearWeakRefs(op);
    clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

void
plus_dealloc(PyObject *op)
{
    plus_dealloc_by(op, Py_TYPE(op)->tp_clear);
}

PyObject *
plus_repr_with(PyObject *op, const char *format, Py_ssize_t first, Py_ssize_t second)
{
    PyObject *state = PyUnicode_FromFormat(format, first, second);
    PyObject *repr = state != NULL
                         ? PyUnicode_FromFormat("<%s at %p: %U>", Py_TYPE(op)->tp_name, op, state)
                         : NULL;

    Py_XDECREF(state);
    return repr;
}

/* All members before `standards` are owned references, one after the other. */
#define REFERENCES (offsetof(struct plus_threads_state, standards) / sizeof(PyObject *))

int
plus_threads_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **references = PyModule_GetState(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_VISIT(references[i]);
    }
    struct plus_threads_state *state = PyModule_GetState(module);
    for (size_t i = 0; state != NULL && i < PLUS_STANDARDS; i++) {
        int rc = plus_standard_traverse(&state->standards[i], visit, arg);

        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int
plus_threads_clear(PyObject *module)
{
    PyObject **references = PyModule_GetState(module);
    struct plus_threads_state *state = PyModule_GetState(module);

    for (size_t i = 0; state != NULL && i < PLUS_STANDARDS; i++) {
        plus_standard_forget(&state->standards[i]);
    }
    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_CLEAR(references[i]);
    }
    return 0;
}
