/* Operations on a whole CompactDict: merging, comparing, repr.  Comparisons and reprs run other code, so each entry is
 * held while it is used, and the next one is searched for anew. */
#include "../binding.h"

#include "../../_base/rows.h"

#include "compact_dict.h"

static Py_ssize_t
length(PyObject *self)
{
    return plus_compact_used(plus_compact_of(self));
}

/* Either operand of a binary operator may be a CompactDict. */
static const struct plus_compact_state *
state_of_either(PyObject *left, PyObject *right)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(left));

    if (state == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        state = plus_compact_state_of_type(Py_TYPE(right));
    }
    return state;
}

PyObject *
plus_compact_merge(PyObject *left, PyObject *right)
{
    const struct plus_compact_state *state = state_of_either(left, right);

    if (state == NULL) {
        return NULL;
    }
    bool is_ours = plus_compact_check(state, left);
    if (!(is_ours || PyAnyDict_Check(left)) ||
        !(PyAnyDict_Check(right) || plus_compact_check(state, right))) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyObject *merged = is_ours ? plus_compact_copied(left) : plus_compact_new(state->compact_dict);
    if (merged != NULL && ((!is_ours && plus_compact_update(merged, left) < 0) ||
                           plus_compact_update(merged, right) < 0)) {
        Py_CLEAR(merged);
    }
    return merged;
}

PyObject *
plus_compact_inplace_merge(PyObject *self, PyObject *other)
{
    return plus_compact_update(self, other) < 0 ? NULL : Py_NewRef(self);
}

/* The value of a key in a CompactDict or a dict, a new reference; NULL, without an exception if the key is missing. */
static PyObject *
value_in(PyObject *mapping, PyObject *key)
{
    PyObject *value = PyAnyDict_Check(mapping) ? PyDict_GetItemWithError(mapping, key)
                                               : plus_compact_get(mapping, key);

    return Py_XNewRef(value);
}

static int
is_equal(PyObject *self, PyObject *other)
{
    const struct plus_compact *table = plus_compact_of(self);
    int same = length(self) == (PyAnyDict_Check(other) ? PyDict_GET_SIZE(other) : length(other));

    for (Py_ssize_t at = plus_compact_next(table, 0); same > 0 && at >= 0;
         at = plus_compact_next(table, at + 1)) {
        const struct plus_compact_entry *entry = plus_compact_at(table, at);
        PyObject *key = Py_NewRef(entry->key), *value = Py_NewRef(entry->value);
        PyObject *others = value_in(other, key);
        if (others == NULL) {
            same = PyErr_Occurred() ? -1 : 0;
        }
        else {
            same = PyObject_RichCompareBool(others, value, Py_EQ);
            Py_DECREF(others);
        }
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return same;
}

PyObject *
plus_compact_richcompare(PyObject *self, PyObject *other, int op)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(self));

    if (state == NULL) {
        return NULL;
    }
    if ((op != Py_EQ && op != Py_NE) ||
        !(PyAnyDict_Check(other) || plus_compact_check(state, other))) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    int same = is_equal(self, other);
    return same < 0 ? NULL : PyBool_FromLong((same != 0) == (op == Py_EQ));
}

/* A list of the texts "key: value". */
static PyObject *
item_texts(PyObject *self)
{
    const struct plus_compact *table = plus_compact_of(self);
    PyObject *texts = PyList_New(0);

    for (Py_ssize_t at = plus_compact_next(table, 0); texts != NULL && at >= 0;
         at = plus_compact_next(table, at + 1)) {
        const struct plus_compact_entry *entry = plus_compact_at(table, at);
        PyObject *key = Py_NewRef(entry->key), *value = Py_NewRef(entry->value);
        plus_append_row(&texts, PyUnicode_FromFormat("%R: %R", key, value));
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return texts;
}

PyObject *
plus_compact_repr(PyObject *self)
{
    /* A metaclass may give it another type than str. */
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__name__");
    int entered = name != NULL ? Py_ReprEnter(self) : -1;
    PyObject *repr = NULL;

    if (entered > 0) {
        repr = PyUnicode_FromFormat("%S({...})", name);
    }
    else if (entered == 0) {
        PyObject *texts = item_texts(self), *comma = PyUnicode_FromString(", ");
        PyObject *joined = texts != NULL && comma != NULL ? PyUnicode_Join(comma, texts) : NULL;
        repr = joined != NULL ? PyUnicode_FromFormat("%S({%U})", name, joined) : NULL;
        Py_XDECREF(texts);
        Py_XDECREF(comma);
        Py_XDECREF(joined);
        Py_ReprLeave(self);
    }
    Py_XDECREF(name);
    return repr;
}
