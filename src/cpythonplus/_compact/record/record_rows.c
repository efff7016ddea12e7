/* Records from rows of databases, csv and JSON: by name from mappings, by place from sequences. */
#include "record.h"

#include "../../_base/rows.h"
#include <stdarg.h>

struct reading {
    PyTypeObject *type;
    const char *method;
    Py_ssize_t row; /* the row's number, for errors; -1 if there is only one */
    bool ignores_extra;
};

/* Raise "Row.from_rows(): row 3 ..."; the format continues this text. */
static PyObject *
wrong_row(const struct reading *reading, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (text == NULL) {
        return NULL;
    }
    if (reading->row < 0) {
        PyErr_Format(PyExc_TypeError, "%s.%s(): row %U", reading->type->tp_name, reading->method,
                     text);
    }
    else {
        PyErr_Format(PyExc_TypeError, "%s.%s(): row %zd %U", reading->type->tp_name,
                     reading->method, reading->row, text);
    }
    Py_DECREF(text);
    return NULL;
}

static PyObject *
raise_extra(const struct reading *reading, const struct plus_record_class *class, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(dict, &at, &key, &value)) {
        Py_INCREF(key);
        int known = PySequence_Contains(class->names, key);
        PyObject *raised =
            known == 0 ? wrong_row(reading, "has %R, which is not a field", key) : NULL;
        Py_DECREF(key);
        if (known <= 0) {
            return raised;
        }
    }
    return wrong_row(reading, "changed while it was read");
}

/* ---- one row -------------------------------------------------------------------------------------- */

static int
fill_from_dict(const struct reading *reading, PyObject *op, PyObject *dict)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    Py_ssize_t found = 0;

    for (Py_ssize_t i = 0; i < class->count; i++) {
        PyObject *value = PyDict_GetItemWithError(dict, plus_record_name(class, i));
        found += value != NULL;
        if (value == NULL && PyErr_Occurred()) {
            return -1;
        }
        if (value == NULL && (value = plus_record_default(class, i)) == NULL) {
            wrong_row(reading, "has no %R", plus_record_name(class, i));
            return -1;
        }
        *plus_record_field(class, op, i) = Py_NewRef(value);
    }
    if (found < PyDict_GET_SIZE(dict) && !reading->ignores_extra) {
        raise_extra(reading, class, dict);
        return -1;
    }
    return 0;
}

static int
fill_from_items(const struct reading *reading, PyObject *op, PyObject *const *items,
                Py_ssize_t count)
{
    const struct plus_record_class *class = plus_record_class_of(op);

    if (count != class->count) {
        wrong_row(reading, "has %zd value%s for %zd field%s", count, count == 1 ? "" : "s",
                  class->count, class->count == 1 ? "" : "s");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        *plus_record_field(class, op, i) = Py_NewRef(items[i]);
    }
    return 0;
}

/* The record of a row, which is a dict, a list or a tuple. */
static PyObject *
record_of(const struct reading *reading, PyObject *row)
{
    PyObject *op = plus_record_new((struct plus_record_class *)reading->type);

    if (op == NULL) {
        return NULL;
    }
    int status = PyDict_Check(row) ? fill_from_dict(reading, op, row)
                                   : fill_from_items(reading, op, PySequence_Fast_ITEMS(row),
                                                     PySequence_Fast_GET_SIZE(row));
    if (status < 0 || plus_record_post_init(op) < 0) {
        Py_CLEAR(op);
    }
    return op;
}

/* Call a class that has an __init__ or a __new__ of its own. */
static PyObject *
called(const struct reading *reading, PyObject *row)
{
    PyObject *args = PyDict_Check(row) ? PyTuple_New(0) : PySequence_Tuple(row);
    PyObject *kwargs = PyDict_Check(row) ? PyDict_New() : NULL, *key, *value, *op = NULL;
    const struct plus_record_class *class = (struct plus_record_class *)reading->type;
    bool failed = args == NULL || (PyDict_Check(row) && kwargs == NULL);

    for (Py_ssize_t at = 0; !failed && kwargs != NULL && PyDict_Next(row, &at, &key, &value);) {
        Py_INCREF(key);
        Py_INCREF(value);
        int known = reading->ignores_extra ? PySequence_Contains(class->names, key) : 1;
        failed = known < 0 || (known && PyDict_SetItem(kwargs, key, value) < 0);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    if (!failed) {
        op = PyObject_Call((PyObject *)reading->type, args, kwargs);
    }
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return op;
}

/* A dict, a list or a tuple with the row's contents.  An object with keys() is a mapping, even sqlite3.Row: names are
 * safer than the order of columns. */
static PyObject *
plain_row(const struct reading *reading, PyObject *row)
{
    if (PyDict_CheckExact(row) || PyList_CheckExact(row) || PyTuple_CheckExact(row)) {
        return Py_NewRef(row);
    }
    if (PyObject_HasAttrString(row, "keys")) {
        PyObject *dict = PyDict_New();
        if (dict != NULL && PyDict_Update(dict, row) < 0) {
            Py_CLEAR(dict);
        }
        return dict;
    }
    if (!PySequence_Check(row) || PyUnicode_Check(row) || PyBytes_Check(row) ||
        PyByteArray_Check(row)) {
        return wrong_row(reading, "is neither a mapping nor a sequence of values: %R",
                         Py_TYPE(row));
    }
    return PySequence_Tuple(row);
}

static PyObject *
read_row(const struct reading *reading, PyObject *row)
{
    PyObject *op, *plain = plain_row(reading, row);

    if (plain == NULL) {
        return NULL;
    }
    op = plus_record_is_plain(reading->type) ? record_of(reading, plain) : called(reading, plain);
    Py_DECREF(plain);
    return op;
}

/* ---- class methods -------------------------------------------------------------------------------- */

static int
parse(struct reading *reading, PyObject *type, PyObject **rows, PyObject *args, PyObject *kwargs,
      const char *format, char **names)
{
    int ignores_extra = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, rows, &ignores_extra)) {
        return -1;
    }
    if (!plus_record_is_sealed((PyTypeObject *)type)) {
        plus_record_raise_unsealed((PyTypeObject *)type);
        return -1;
    }
    reading->type = (PyTypeObject *)type;
    reading->ignores_extra = ignores_extra != 0;
    return 0;
}

PyObject *
plus_record_from_row(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "ignore_extra", NULL};
    struct reading reading = {.method = "from_row", .row = -1};
    PyObject *row;

    if (parse(&reading, type, &row, args, kwargs, "O|$p:from_row", names) < 0) {
        return NULL;
    }
    return read_row(&reading, row);
}

PyObject *
plus_record_from_rows(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "ignore_extra", NULL};
    struct reading reading = {.method = "from_rows"};
    PyObject *rows, *row;

    if (parse(&reading, type, &rows, args, kwargs, "O|$p:from_rows", names) < 0) {
        return NULL;
    }
    PyObject *iterator = PyObject_GetIter(rows);
    PyObject *records = iterator != NULL ? PyList_New(0) : NULL;

    for (; records != NULL && (row = PyIter_Next(iterator)) != NULL; reading.row++) {
        plus_append_row(&records, read_row(&reading, row));
        Py_DECREF(row);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(records);
    }
    Py_XDECREF(iterator);
    return records;
}
