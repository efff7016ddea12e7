#include "sizes.h"

#include "layouts.h"

PyObject *
plus_sizeof_method(PyTypeObject *type)
{
    static PyObject *name; /* interned, never freed */

    if (name == NULL && (name = PyUnicode_InternFromString("__sizeof__")) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    return plus_class_has_plain_names(type) ? _PyType_Lookup(type, name)
                                            : plus_class_attribute(type, "__sizeof__");
}

static Py_ssize_t
plain_bytes(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_ssize_t items = type->tp_itemsize > 0 && !PyLong_Check(op) ? Py_SIZE(op) : 0;

    return type->tp_basicsize + (items < 0 ? -items : items) * type->tp_itemsize;
}

/* True if a method is the interpreter's own, or numpy's.  A method written in C is not enough: Cython's methods are,
 * and may call any code.  Nor is its name in the class enough: a class may have list.clear as __sizeof__. */
static bool
is_trusted(PyObject *method)
{
    static const char *const modules[] = {"array.", "_io.", "collections.", "numpy."};

    if (method == NULL || !Py_IS_TYPE(method, &PyMethodDescr_Type) ||
        PyUnicode_CompareWithASCIIString(PyDescr_NAME(method), "__sizeof__") != 0) {
        return false;
    }
    const char *owner = ((PyDescrObject *)method)->d_type->tp_name;
    if (strchr(owner, '.') == NULL) {
        return true; /* of builtins */
    }
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        if (strncmp(owner, modules[i], strlen(modules[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* -1 if it cannot be called, or fails. */
static Py_ssize_t
told_bytes(PyObject *op, PyObject *method)
{
    if (!is_trusted(method)) {
        return -1;
    }
    PyObject *told = PyObject_CallOneArg(method, op);
    Py_ssize_t size = told != NULL && PyLong_CheckExact(told) ? PyLong_AsSsize_t(told) : -1;

    Py_XDECREF(told);
    PyErr_Clear();
    return size;
}

static Py_ssize_t
own_bytes(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject *method = plus_sizeof_method(type);
    /* object's own method computes the same, only slower. */
    Py_ssize_t size =
        method == plus_sizeof_method(&PyBaseObject_Type) ? -1 : told_bytes(op, method);

    return size < 0 ? plain_bytes(op) : size;
}

Py_ssize_t
plus_object_bytes(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    /* A method may make objects, as that of io.BytesIO does, and so may a proof.  On 3.11 that starts the collector,
     * which changes the list that the caller walks along and runs any code. */
    int collects = PyGC_Disable();
    Py_ssize_t size = own_bytes(op);

    if (collects) {
        PyGC_Enable();
    }
    if (PyType_IS_GC(type)) {
        size += PLUS_GC_HEADER_WORDS * (Py_ssize_t)sizeof(void *);
    }
    return plus_has_preheader(type) ? size + 2 * (Py_ssize_t)sizeof(void *) : size;
}
