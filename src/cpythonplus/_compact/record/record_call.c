/* The fields of a new record from the arguments of a call, with a function's errors. */
#include "record.h"

static const char *
name_of(const struct plus_record_class *class)
{
    return ((const PyTypeObject *)class)->tp_name;
}

/* ---- errors --------------------------------------------------------------------------------------- */

/* "'a'", "'a' and 'b'", "'a', 'b', and 'c'". */
static PyObject *
listed(PyObject *names)
{
    Py_ssize_t count = PyList_GET_SIZE(names);
    PyObject *text = PyUnicode_FromFormat("%R", PyList_GET_ITEM(names, 0));

    for (Py_ssize_t i = 1; text != NULL && i < count; i++) {
        const char *between = i < count - 1 ? ", " : count == 2 ? " and " : ", and ";
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%R", text, between, PyList_GET_ITEM(names, i)));
    }
    return text;
}

/* `first` is always listed: a collection that the list starts may set the field. */
static int
raise_missing(const struct plus_record_class *class, PyObject *op, Py_ssize_t first)
{
    PyObject *names = PyList_New(0), *text = NULL;

    for (Py_ssize_t i = first; names != NULL && i < class->count; i++) {
        bool missing =
            *plus_record_field(class, op, i) == NULL && plus_record_default(class, i) == NULL;
        if ((missing || i == first) && PyList_Append(names, plus_record_name(class, i)) < 0) {
            Py_CLEAR(names);
        }
    }
    if (names != NULL && (text = listed(names)) != NULL) {
        Py_ssize_t count = PyList_GET_SIZE(names);
        PyErr_Format(PyExc_TypeError, "%s() missing %zd required positional argument%s: %U",
                     name_of(class), count, count == 1 ? "" : "s", text);
    }
    Py_XDECREF(names);
    Py_XDECREF(text);
    return -1;
}

/* ---- binding -------------------------------------------------------------------------------------- */

static int
bind_positional(const struct plus_record_class *class, PyObject *op, PyObject *const *args,
                Py_ssize_t nargs)
{
    if (nargs > class->count) {
        Py_ssize_t required = class->count - PyTuple_GET_SIZE(class->defaults);

        if (required == class->count) {
            PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given",
                         name_of(class), class->count, class->count == 1 ? "" : "s", nargs,
                         nargs == 1 ? "was" : "were");
        }
        else {
            PyErr_Format(
                PyExc_TypeError, "%s() takes from %zd to %zd positional arguments but %zd %s given",
                name_of(class), required, class->count, nargs, nargs == 1 ? "was" : "were");
        }
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        *plus_record_field(class, op, i) = Py_NewRef(args[i]);
    }
    return 0;
}

/* The index of a field, searched from `hint` on, since most callers keep the order; count if there is none; -1 with an
 * exception. */
static Py_ssize_t
place_of(const struct plus_record_class *class, PyObject *name, Py_ssize_t hint)
{
    for (Py_ssize_t i = hint; i < class->count; i++) {
        if (plus_record_name(class, i) == name) {
            return i;
        }
    }
    for (Py_ssize_t i = 0; i < class->count; i++) {
        int equal = PyUnicode_Compare(plus_record_name(class, i), name) == 0;
        if (equal || PyErr_Occurred()) {
            return equal ? i : -1;
        }
    }
    return class->count;
}

/* The index after the field, or -1. */
static Py_ssize_t
bind_keyword(const struct plus_record_class *class, PyObject *op, PyObject *name, PyObject *value,
             Py_ssize_t hint)
{
    Py_ssize_t place = PyUnicode_Check(name) ? place_of(class, name, hint) : class->count;

    if (place < 0) {
        return -1;
    }
    if (place == class->count) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", name_of(class),
                     name);
        return -1;
    }
    PyObject **field = plus_record_field(class, op, place);
    if (*field != NULL) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument %R", name_of(class),
                     name);
        return -1;
    }
    *field = Py_NewRef(value);
    return place + 1;
}

/* Set the missing fields behind the positional ones. */
static int
bind_defaults(const struct plus_record_class *class, PyObject *op, Py_ssize_t nargs)
{
    for (Py_ssize_t i = nargs; i < class->count; i++) {
        PyObject **field = plus_record_field(class, op, i);
        if (*field == NULL && (*field = Py_XNewRef(plus_record_default(class, i))) == NULL) {
            return raise_missing(class, op, i);
        }
    }
    return 0;
}

int
plus_record_bind(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    Py_ssize_t keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0, place = nargs;

    if (bind_positional(class, op, args, nargs) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < keywords; i++) {
        place = bind_keyword(class, op, PyTuple_GET_ITEM(kwnames, i), args[nargs + i], place);
        if (place < 0) {
            return -1;
        }
    }
    return bind_defaults(class, op, nargs);
}

int
plus_record_bind_dict(PyObject *op, PyObject *args, PyObject *kwargs)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    Py_ssize_t nargs = PyTuple_GET_SIZE(args), place = nargs, at = 0;
    PyObject *name, *value;

    if (bind_positional(class, op, ((PyTupleObject *)args)->ob_item, nargs) < 0) {
        return -1;
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &name, &value)) {
        place = bind_keyword(class, op, name, value, place);
        if (place < 0) {
            return -1;
        }
    }
    return bind_defaults(class, op, nargs);
}

int
plus_record_post_init(PyObject *op)
{
    PyObject *name = plus_record_class_of(op)->post_init;

    if (name == NULL) {
        return 0;
    }
    PyObject *result = PyObject_CallMethodNoArgs(op, name);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

PyObject *
plus_record_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyTypeObject *type = (PyTypeObject *)callable;

    if (!plus_record_is_plain(type)) { /* the class has got an __init__ or a __new__ since */
        type->tp_vectorcall = NULL;
        return PyObject_Vectorcall(callable, args, nargsf, kwnames);
    }
    PyObject *op = plus_record_new((struct plus_record_class *)type);
    if (op != NULL && (plus_record_bind(op, args, PyVectorcall_NARGS(nargsf), kwnames) < 0 ||
                       plus_record_post_init(op) < 0)) {
        Py_CLEAR(op);
    }
    return op;
}
