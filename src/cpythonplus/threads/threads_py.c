/* The room's part of the extension module: its state, its types, its one function. */
#include "binding.h"

#include <string.h>

struct plus_threads_state *
plus_threads_state(PyTypeObject *type)
{
    PyObject *module = PyType_GetModuleByDef(type, &plus_native_module);

    return module != NULL ? PyModule_GetState(module) : NULL;
}

PyTypeObject *
plus_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, (PyObject *)base);

    if (type == NULL) {
        return NULL;
    }
    if (PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

void
plus_dealloc(PyObject *op, PyObject **weakrefs, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    if (*weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyGetSetDef plus_dict_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *
full_name(PyObject *op)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(op), "__module__");
    PyObject *name = PyType_GetQualName(Py_TYPE(op));
    PyObject *full = NULL;

    if (module != NULL && name != NULL) {
        /* The standard library's tests expect one word before the dot. */
        bool ours = PyUnicode_Check(module) &&
                    PyUnicode_CompareWithASCIIString(module, "cpythonplus.threads") == 0;
        full = ours ? PyUnicode_FromFormat("threads.%U", name)
                    : PyUnicode_FromFormat("%S.%U", module, name);
    }

    Py_XDECREF(module);
    Py_XDECREF(name);
    return full;
}

PyObject *
plus_repr_with(PyObject *op, const char *format, Py_ssize_t first, Py_ssize_t second)
{
    PyObject *name = full_name(op);
    PyObject *state = PyUnicode_FromFormat(format, first, second);
    PyObject *repr = NULL;

    if (name != NULL && state != NULL) {
        repr = PyUnicode_FromFormat("<%U at %p: %U>", name, op, state);
    }
    Py_XDECREF(name);
    Py_XDECREF(state);
    return repr;
}

static PyObject *
threads_set_main(PyObject *module, PyObject *ident)
{
    unsigned long value = PyLong_AsUnsignedLong(ident);

    if (value == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    plus_main_ident = value;
    Py_RETURN_NONE;
}

PyMethodDef plus_threads_methods[] = {
    {"threads_set_main", threads_set_main, METH_O,
     PyDoc_STR(
         "threads_set_main($module, ident, /)\n--\n\n"
         "Say which thread runs signal handlers, so that its waits are interrupted by them.")},
    {NULL, NULL, 0, NULL},
};

int
plus_threads_exec(PyObject *module)
{
    static int (*const exec[])(PyObject *, struct plus_threads_state *) = {
        plus_lock_exec,  plus_rlock_exec,   plus_condition_exec, plus_semaphore_exec,
        plus_event_exec, plus_barrier_exec, plus_queue_exec,     plus_simple_queue_exec,
    };
    struct plus_threads_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < sizeof(exec) / sizeof(exec[0]); i++) {
        if (exec[i](module, state) < 0) {
            return -1;
        }
    }
    if (PyModule_AddFunctions(module, plus_threads_methods) < 0) {
        return -1;
    }
    return plus_waiting_init();
}

/* All members are owned references, one after the other. */
_Static_assert(sizeof(struct plus_threads_state) % sizeof(PyObject *) == 0, "only references");
#define REFERENCES (sizeof(struct plus_threads_state) / sizeof(PyObject *))

int
plus_threads_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **references = PyModule_GetState(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_VISIT(references[i]);
    }
    return 0;
}

int
plus_threads_clear(PyObject *module)
{
    PyObject **references = PyModule_GetState(module);

    for (size_t i = 0; references != NULL && i < REFERENCES; i++) {
        Py_CLEAR(references[i]);
    }
    return 0;
}
