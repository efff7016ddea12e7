/* The room's part of the extension module: its state, its types, its one function. */
#include "binding.h"

#include <stddef.h>

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

PyGetSetDef plus_standard_getset[] = {
    PLUS_STANDARD_GETSET,
    {NULL, NULL, NULL, NULL, NULL},
};

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

/* The entry of a native type; a free one if it has none yet; NULL for a type that has no room. */
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
    return plus_none(entry->type != type ? plus_standard_introduce(entry, native, type, home) : 0);
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

/* What threading.Lock is before 3.13. */
static PyObject *
allocate_lock(PyObject *module, PyObject *ignored)
{
    struct plus_threads_state *state = PyModule_GetState(module);

    return PyObject_CallNoArgs((PyObject *)state->lock);
}

static PyMethodDef threads_methods[] = {
    {"allocate_lock", allocate_lock, METH_NOARGS,
     PyDoc_STR("allocate_lock($module, /)\n--\n\nCreate a new lock object.")},
    {"threads_set_main", threads_set_main, METH_O,
     PyDoc_STR(
         "threads_set_main($module, ident, /)\n--\n\n"
         "Say which thread runs signal handlers, so that its waits are interrupted by them.")},
    {"threads_introduce", threads_introduce, METH_VARARGS,
     PyDoc_STR("threads_introduce($module, native, standard, home, /)\n--\n\n"
               "Tell a native type which class of the standard library it stands for.\n\n"
               "home: the globals of that class's module.")},
    {"threads_stand", threads_stand, METH_VARARGS,
     PyDoc_STR("threads_stand($module, native, active, /)\n--\n\n"
               "Have calls of the standard class make native objects, or no longer.")},
    {NULL, NULL, 0, NULL},
};

int
plus_threads_exec(PyObject *module)
{
    static plus_types_exec *const exec[] = {
        plus_lock_exec,    plus_condition_exec, plus_semaphore_exec,    plus_event_exec,
        plus_barrier_exec, plus_queue_exec,     plus_simple_queue_exec,
    };
    struct plus_threads_state *state = PyModule_GetState(module);

    for (size_t i = 0; i < sizeof(exec) / sizeof(exec[0]); i++) {
        if (exec[i](module, state) < 0) {
            return -1;
        }
    }
    if (PyModule_AddFunctions(module, threads_methods) < 0) {
        return -1;
    }
    return plus_waiting_init();
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
