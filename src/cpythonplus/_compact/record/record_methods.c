/* Records as values: comparison, hash, repr, copies, pickles, dicts of their fields.
 *
 * The class is held while code of the program runs: that code may assign to the object's __class__. */
#include "record.h"

#include "../../_base/rows.h"
#include "../state.h"

/* ---- comparison ----------------------------------------------------------------------------------- */

/* 1, 0 or -1 with an exception.  Fields that are unset in both are equal; an object is equal to itself, as in lists.
 * The values are held: an __eq__ may assign to the fields. */
static int
fields_are_equal(PyObject *left, PyObject *right)
{
    const struct plus_record_class *class = plus_record_class_of(left);
    int equal = 1;

    for (Py_ssize_t i = 0; equal == 1 && i < class->count; i++) {
        PyObject *one = *plus_record_field(class, left, i);
        PyObject *other = *plus_record_field(class, right, i);
        if (one == NULL || other == NULL) {
            equal = one == other;
            continue;
        }
        Py_INCREF(one);
        Py_INCREF(other);
        equal = PyObject_RichCompareBool(one, other, Py_EQ);
        Py_DECREF(one);
        Py_DECREF(other);
    }
    return equal;
}

PyObject *
plus_record_compare(PyObject *left, PyObject *right, int how)
{
    if (how == Py_NE) { /* object's != calls ==, which a class may override */
        return PyBaseObject_Type.tp_richcompare(left, right, how);
    }
    if (how != Py_EQ || Py_TYPE(left) != Py_TYPE(right)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (Py_EnterRecursiveCall(" in comparison")) {
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)Py_NewRef(Py_TYPE(left));
    int equal = fields_are_equal(left, right);
    Py_DECREF(type);
    Py_LeaveRecursiveCall();
    return equal < 0 ? NULL : PyBool_FromLong(equal);
}

/* A new tuple of the values of all fields, in order; NULL with AttributeError if a field is unset. */
static PyObject *
values_of(PyObject *op)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    PyObject *values = PyTuple_New(class->count);

    for (Py_ssize_t i = 0; values != NULL && i < class->count; i++) {
        PyObject *value = *plus_record_field(class, op, i);
        if (value == NULL) {
            Py_DECREF(values);
            PyErr_Format(PyExc_AttributeError, "%R of this %s is not set",
                         plus_record_name(plus_record_class_of(op), i), Py_TYPE(op)->tp_name);
            return NULL;
        }
        PyTuple_SET_ITEM(values, i, Py_NewRef(value));
    }
    return values;
}

Py_hash_t
plus_record_hash(PyObject *op)
{
    if (Py_EnterRecursiveCall(" while hashing")) { /* tuples have no limit of their own */
        return -1;
    }
    PyObject *values = values_of(op);
    Py_hash_t hash = values != NULL ? PyObject_Hash(values) : -1;
    Py_LeaveRecursiveCall();
    Py_XDECREF(values);
    return hash;
}

/* ---- repr ----------------------------------------------------------------------------------------- */

PyObject *
plus_record_repr(PyObject *op)
{
    int entered = Py_ReprEnter(op);

    if (entered != 0) {
        return entered < 0 ? NULL : PyUnicode_FromString("...");
    }
    PyObject *type = Py_NewRef(Py_TYPE(op)), *text = NULL;
    const struct plus_record_class *class = plus_record_class_of(op);
    PyObject *parts = PyList_New(0), *comma = PyUnicode_FromString(", "), *fields = NULL;

    for (Py_ssize_t i = 0; parts != NULL && i < class->count; i++) {
        PyObject *value = Py_XNewRef(*plus_record_field(class, op, i));
        PyObject *name = plus_record_name(class, i);
        plus_append_row(&parts, value != NULL ? PyUnicode_FromFormat("%U=%R", name, value)
                                              : PyUnicode_FromFormat("%U=<not set>", name));
        Py_XDECREF(value);
    }
    if (parts != NULL && comma != NULL) {
        fields = PyUnicode_Join(comma, parts);
    }
    Py_XDECREF(parts);
    Py_XDECREF(comma);
    PyObject *name = fields != NULL ? PyObject_GetAttrString(type, "__qualname__") : NULL;
    if (name != NULL) {
        text = PyUnicode_FromFormat("%S(%U)", name, fields);
    }
    Py_XDECREF(fields);
    Py_XDECREF(name);
    Py_DECREF(type);
    Py_ReprLeave(op);
    return text;
}

/* ---- copies and pickles --------------------------------------------------------------------------- */

PyObject *
plus_record_asdict(PyObject *op, PyObject *unused)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    PyObject *dict = PyDict_New();

    for (Py_ssize_t i = 0; dict != NULL && i < class->count; i++) {
        PyObject *value = *plus_record_field(class, op, i);
        if (value != NULL && PyDict_SetItem(dict, plus_record_name(class, i), value) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* By the constructor, like dataclasses.replace(): fields that __post_init__ computes are computed again. */
PyObject *
plus_record_replace(PyObject *op, PyObject *args, PyObject *changes)
{
    PyObject *copy = NULL;

    if (PyTuple_GET_SIZE(args) > 0) {
        PyErr_SetString(PyExc_TypeError, "__replace__() takes keyword arguments only");
        return NULL;
    }
    PyObject *fields = plus_record_asdict(op, NULL);
    PyObject *type = Py_NewRef(Py_TYPE(op));
    if (fields != NULL && (changes == NULL || PyDict_Update(fields, changes) == 0)) {
        copy = PyObject_Call(type, args, fields);
    }
    Py_DECREF(type);
    Py_XDECREF(fields);
    return copy;
}

/* (copyreg.__newobj__, (class,), values), so that the object exists before its fields are read, which may refer to it.
 * If a field is unset there is a dict in place of the tuple. */
PyObject *
plus_record_reduce(PyObject *op, PyObject *unused)
{
    struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(op));

    if (state == NULL) {
        return NULL;
    }
    PyObject *values = values_of(op);
    if (values == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        values = plus_record_asdict(op, NULL);
    }
    return values == NULL ? NULL : Py_BuildValue("O(O)N", state->record_maker, Py_TYPE(op), values);
}

static void
restore_field(const struct plus_record_class *class, PyObject *op, Py_ssize_t i, PyObject *value)
{
    PyObject **field = plus_record_field(class, op, i), *old = *field;

    *field = Py_NewRef(value);
    Py_XDECREF(old);
}

/* There may be fewer values than fields: the class has got new fields since, with defaults. */
static int
restore_values(PyObject *op, PyObject *values)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    Py_ssize_t count = PyTuple_GET_SIZE(values);

    if (count > class->count ||
        (count < class->count && plus_record_default(class, count) == NULL)) {
        PyErr_Format(PyExc_TypeError, "%s has %zd fields, but %zd values were pickled",
                     Py_TYPE(op)->tp_name, class->count, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < class->count; i++) {
        restore_field(class, op, i,
                      i < count ? PyTuple_GET_ITEM(values, i) : plus_record_default(class, i));
    }
    return 0;
}

static int
restore_named(PyObject *op, PyObject *dict)
{
    const struct plus_record_class *class = plus_record_class_of(op);
    Py_ssize_t found = 0;

    for (Py_ssize_t i = 0; i < class->count; i++) {
        PyObject *value = PyDict_GetItemWithError(dict, plus_record_name(class, i));
        if (value == NULL && PyErr_Occurred()) {
            return -1;
        }
        if (value != NULL) {
            found++;
            restore_field(class, op, i, value);
        }
    }
    if (found < PyDict_GET_SIZE(dict)) {
        PyErr_Format(PyExc_TypeError, "what was pickled has other fields than %s",
                     Py_TYPE(op)->tp_name);
        return -1;
    }
    return 0;
}

static bool
is_empty(PyObject *op)
{
    for (PyObject **field = plus_record_fields(op); field < plus_record_end(op); field++) {
        if (*field != NULL) {
            return false;
        }
    }
    return true;
}

int
plus_record_may_be_set(PyObject *op)
{
    if (!plus_record_class_of(op)->frozen || is_empty(op)) {
        return 0;
    }
    PyErr_Format(PyExc_AttributeError, "this %s is frozen and has been set", Py_TYPE(op)->tp_name);
    return -1;
}

PyObject *
plus_record_setstate(PyObject *op, PyObject *values)
{
    PyObject *type;
    int status;

    if (plus_record_may_be_set(op) < 0) {
        return NULL;
    }
    type = Py_NewRef(Py_TYPE(op));
    if (PyTuple_CheckExact(values)) {
        status = restore_values(op, values);
    }
    else if (PyDict_CheckExact(values)) {
        status = restore_named(op, values);
    }
    else {
        PyErr_SetString(PyExc_TypeError, "the state of a record is a tuple or a dict");
        status = -1;
    }
    Py_DECREF(type);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- frozen --------------------------------------------------------------------------------------- */

PyObject *
plus_record_frozen_setattr(PyObject *op, PyObject *args)
{
    PyObject *name, *value;

    if (PyArg_ParseTuple(args, "OO:__setattr__", &name, &value)) {
        PyErr_Format(PyExc_AttributeError, "cannot assign to %R: %s is frozen", name,
                     Py_TYPE(op)->tp_name);
    }
    return NULL;
}

PyObject *
plus_record_frozen_delattr(PyObject *op, PyObject *name)
{
    PyErr_Format(PyExc_AttributeError, "cannot delete %R: %s is frozen", name,
                 Py_TYPE(op)->tp_name);
    return NULL;
}
