/* Method objects that bind like Python functions.
 *
 * `event.set` must be a types.MethodType: code that keeps callbacks weakly (weakref.WeakMethod, the signals of Django
 * and blinker) uses its __func__, and drops a built-in method at once. */
#include "standard/standard.h"

#include "../_base/methods.h"

#include <structmember.h>

/* A wrapper around a method descriptor of a native type. */
typedef struct {
    PyObject_HEAD PyObject *descriptor;
    const struct plus_standard *entry; /* in the state of the module, which the type keeps */
    vectorcallfunc vectorcall;
    PyObject *weakrefs;
} plus_method_object;

static PyObject *
call_any(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    plus_method_object *self = (plus_method_object *)op;
    PyMethodDescrObject *descriptor = (PyMethodDescrObject *)self->descriptor;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);

    if (nargs > 0 && !plus_standard_is_untouched(self->entry, args[0])) {
        PyObject *function = plus_standard_replaced(args[0], PyDescr_NAME(descriptor));
        if (function != NULL) {
            PyObject *result = PyObject_Vectorcall(function, args + 1, (size_t)nargs - 1, kwnames);
            Py_DECREF(function);
            return result;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    return descriptor->vectorcall((PyObject *)descriptor, args, nargsf, kwnames);
}

/* The interpreter calls the functions of its own descriptor types directly.  These functions do so for our methods; a
 * call with wrong arguments is left to the descriptor, which raises the error. */

static inline PyMethodDef *
definition_for(PyObject *op, PyObject *const *args, size_t nargsf)
{
    plus_method_object *self = (plus_method_object *)op;
    PyMethodDescrObject *descriptor = (PyMethodDescrObject *)self->descriptor;

    return PyVectorcall_NARGS(nargsf) > 0 &&
                   PyObject_TypeCheck(args[0], PyDescr_TYPE(descriptor)) &&
                   plus_standard_is_untouched(self->entry, args[0])
               ? descriptor->d_method
               : NULL;
}

static PyObject *
call_without_arguments(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyMethodDef *method = definition_for(op, args, nargsf);

    return method != NULL && PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL
               ? method->ml_meth(args[0], NULL)
               : call_any(op, args, nargsf, kwnames);
}

static PyObject *
call_with_keywords(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyMethodDef *method = definition_for(op, args, nargsf);

    if (method == NULL) {
        return call_any(op, args, nargsf, kwnames);
    }
    _PyCFunctionFastWithKeywords function =
        (_PyCFunctionFastWithKeywords)(void (*)(void))method->ml_meth;
    return function(args[0], args + 1, PyVectorcall_NARGS(nargsf) - 1, kwnames);
}

static vectorcallfunc
fastest(PyObject *descriptor)
{
    switch (((PyMethodDescrObject *)descriptor)->d_method->ml_flags) {
    case METH_NOARGS:
        return call_without_arguments;
    case METH_FASTCALL | METH_KEYWORDS:
        return call_with_keywords;
    default:
        return call_any;
    }
}

static PyObject *
method_bind(PyObject *op, PyObject *instance, PyObject *Py_UNUSED(type))
{
    plus_method_object *self = (plus_method_object *)op;

    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    if (!plus_standard_is_untouched(self->entry, instance)) {
        PyObject *function = plus_standard_replaced(instance, PyDescr_NAME(self->descriptor));
        if (function != NULL || PyErr_Occurred()) {
            return function;
        }
    }
    return PyMethod_New(op, instance);
}

/* Gets the name, docstring and signature from the descriptor. */
static PyObject *
method_getattro(PyObject *op, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(op, name);

    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = PyObject_GetAttr(((plus_method_object *)op)->descriptor, name);
    }
    return value;
}

PLUS_GETS(method_get_doc,
          PyObject_GetAttrString(((plus_method_object *)self)->descriptor, "__doc__"))

static PyObject *
method_get_module(PyObject *op, void *Py_UNUSED(closure))
{
    PyMethodDescrObject *descriptor = (PyMethodDescrObject *)((plus_method_object *)op)->descriptor;

    return PyObject_GetAttrString((PyObject *)PyDescr_TYPE(descriptor), "__module__");
}

static PyObject *
method_repr(PyObject *op)
{
    return PyObject_Repr(((plus_method_object *)op)->descriptor);
}

static int
method_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(((plus_method_object *)op)->descriptor);
    return 0;
}

static void
method_dealloc(PyObject *op)
{
    plus_method_object *self = (plus_method_object *)op;

    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    Py_DECREF(self->descriptor);
    PyObject_GC_Del(op);
}

static PyGetSetDef method_getset[] = {
    {"__doc__", method_get_doc, NULL, NULL, NULL},
    {"__module__", method_get_module, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* A static type, like the interpreter's own: it has no state, and needs no module. */
static PyTypeObject method_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.threads.method",
    .tp_basicsize = sizeof(plus_method_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(plus_method_object, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = method_bind,
    .tp_getattro = method_getattro,
    .tp_repr = method_repr,
    .tp_traverse = method_traverse,
    .tp_dealloc = method_dealloc,
    .tp_getset = method_getset,
    .tp_weaklistoffset = offsetof(plus_method_object, weakrefs),
};

static PyObject *
wrapped(PyObject *descriptor, const struct plus_standard *entry)
{
    plus_method_object *self = PyObject_GC_New(plus_method_object, &method_type);

    if (self == NULL) {
        return NULL;
    }
    self->descriptor = Py_NewRef(descriptor);
    self->entry = entry;
    self->vectorcall = fastest(descriptor);
    self->weakrefs = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* Event.is_set is called in loops, and is hardly ever a callback: it keeps the interpreter's short cut, which halves
 * its cost.  Before 3.12 no method can, see plus_standard_is_untouched(). */
static bool
stays_as_it_is(PyObject *name)
{
    return PY_VERSION_HEX >= 0x030C0000 && PyUnicode_CompareWithASCIIString(name, "is_set") == 0;
}

int
plus_bind_as_functions(struct plus_standard *entry)
{
    PyObject *name, *function, *method, *descriptor, *now;
    Py_ssize_t position = 0;
    int rc = PyType_Ready(&method_type);

    while (rc == 0 && PyDict_Next(entry->originals, &position, &name, &function)) {
        descriptor = PyDict_GetItemWithError(entry->own, name);
        if (descriptor == NULL || !Py_IS_TYPE(descriptor, &PyMethodDescr_Type) ||
            !PyFunction_Check(function) || stays_as_it_is(name)) {
            continue;
        }
        now = PyDict_GetItemWithError(entry->native->tp_dict, name);
        method = wrapped(descriptor, entry);
        rc = method == NULL ? -1
             /* if they differ, other code has changed it in the class */
             : now == descriptor ? PyObject_SetAttr((PyObject *)entry->native, name, method)
                                 : 0;
        if (rc == 0) {
            rc = PyDict_SetItem(entry->own, name, method);
        }
        Py_XDECREF(method);
    }
    return rc;
}
