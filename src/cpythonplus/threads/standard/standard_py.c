/* The two functions by which the Python half introduces native types and the classes that they stand for. */
#include "../state.h"

#include "../../_base/methods.h"
#include "standard.h"

/* Returns the entry of a native type, or a free one; NULL with ValueError if no entry is left. */
static struct plus_standard *
entry_for(PyObject *module, PyObject *native)
{
    struct plus_threads_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < PLUS_STANDARDS; i++) {
        struct plus_standard *entry = &state->standards[i];

        if (entry->type == NULL || entry->native == (PyTypeObject *)native) {
            return entry;
        }
    }
    PyErr_SetString(PyExc_ValueError, "it stands for no class of the standard library");
    return NULL;
}

static PyObject *
threads_introduce(PyObject *module, PyObject *args)
{
    PyTypeObject *native, *type;
    PyObject *home;

    if (!PyArg_ParseTuple(args, "O!O!O!:threads_introduce", &PyType_Type, &native, &PyType_Type,
                          &type, &PyDict_Type, &home)) {
        return NULL;
    }
    struct plus_standard *entry = entry_for(module, (PyObject *)native);
    if (entry == NULL) {
        return NULL;
    }
    if (entry->type == type) {
        Py_RETURN_NONE;
    }
    int rc = plus_standard_introduce(entry, native, type, home);
    if (rc == 0 && plus_bind_as_functions(entry) < 0) {
        plus_standard_forget(entry);
        rc = -1;
    }
    return plus_none(rc);
}

static PyObject *
threads_stand(PyObject *module, PyObject *args)
{
    PyObject *native;
    int active;

    if (!PyArg_ParseTuple(args, "O!p:threads_stand", &PyType_Type, &native, &active)) {
        return NULL;
    }
    struct plus_standard *entry = entry_for(module, native);
    if (entry == NULL) {
        return NULL;
    }
    if (entry->type == NULL) {
        return PyErr_Format(PyExc_ValueError, "its class was not introduced");
    }
    plus_standard_activate(entry, active != 0);
    Py_RETURN_NONE;
}

static PyMethodDef standard_methods[] = {
    PLUS_METHOD("threads_introduce", threads_introduce, METH_VARARGS,
                "$module, native, standard, home, /",
                "Tell a native type which class of the standard library it stands for.\n\n"
                "home: the globals of that class's module."),
    PLUS_METHOD("threads_stand", threads_stand, METH_VARARGS, "$module, native, active, /",
                "Have calls of the standard class make native objects, or no longer."),
    {NULL, NULL, 0, NULL},
};

int
plus_standard_exec(PyObject *module, struct plus_threads_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, standard_methods);
}
