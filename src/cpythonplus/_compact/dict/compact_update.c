/* The sources of update() and the constructor: dicts, other mappings, pairs.
 *
 * Setting a key may run other code, which may change the source.  As in dict, the source's size is checked after each
 * step; entries are held until then. */
#include "compact_dict.h"

static int
mutated(void)
{
    PyErr_SetString(PyExc_RuntimeError, "dict mutated during update");
    return -1;
}

static int
set_and_release(PyObject *self, PyObject *key, PyObject *value)
{
    int rc = plus_compact_set(self, key, value);

    Py_DECREF(key);
    Py_DECREF(value);
    return rc;
}

static int
update_from_dict(PyObject *self, PyObject *dict)
{
    Py_ssize_t at = 0, size = PyDict_GET_SIZE(dict);
    PyObject *key, *value;

    while (PyDict_Next(dict, &at, &key, &value)) {
        if (set_and_release(self, Py_NewRef(key), Py_NewRef(value)) < 0) {
            return -1;
        }
        if (PyDict_GET_SIZE(dict) != size) {
            return mutated();
        }
    }
    return 0;
}

static int
update_from_compact(PyObject *self, PyObject *other)
{
    const struct plus_compact *table = plus_compact_of(other);
    Py_ssize_t size = plus_compact_used(table);

    if (other == self) {
        return 0;
    }
    for (Py_ssize_t at = plus_compact_next(table, 0); at >= 0;
         at = plus_compact_next(table, at + 1)) {
        const struct plus_compact_entry *entry = plus_compact_at(table, at);
        if (set_and_release(self, Py_NewRef(entry->key), Py_NewRef(entry->value)) < 0) {
            return -1;
        }
        if (plus_compact_used(table) != size) {
            return mutated();
        }
    }
    return 0;
}

/* The keys are listed first, for reading some mappings changes their order. */
static int
update_from_mapping(PyObject *self, PyObject *mapping)
{
    PyObject *keys = PyMapping_Keys(mapping);
    int rc = keys != NULL ? 0 : -1;

    for (Py_ssize_t i = 0; rc == 0 && i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = Py_NewRef(PyList_GET_ITEM(keys, i));
        PyObject *value = PyObject_GetItem(mapping, key);
        if (value == NULL) {
            Py_DECREF(key);
            rc = -1;
            break;
        }
        rc = set_and_release(self, key, value);
    }
    Py_XDECREF(keys);
    return rc;
}

/* Raise dict's TypeError for an element that is no sequence. */
static void
raise_no_sequence(Py_ssize_t number)
{
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *error = PyErr_GetRaisedException();
    PyObject *noted = PyObject_CallMethod(
        error, "add_note", "N",
        PyUnicode_FromFormat("Cannot convert dictionary update sequence element #%zd to a sequence",
                             number));
    if (noted == NULL) { /* the error is raised without the note */
        PyErr_Clear();
    }
    Py_XDECREF(noted);
    PyErr_SetRaisedException(error);
#else
    PyErr_Format(PyExc_TypeError,
                 "cannot convert dictionary update sequence element #%zd to a sequence", number);
#endif
}

/* Set one of a sequence of pairs; `number` is from 0 on. */
static int
update_from_pair(PyObject *self, PyObject *pair, Py_ssize_t number)
{
    PyObject *fast = PySequence_Fast(pair, "object is not iterable");

    if (fast == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            raise_no_sequence(number);
        }
        return -1;
    }
    int rc = -1;
    if (PySequence_Fast_GET_SIZE(fast) != 2) {
        PyErr_Format(PyExc_ValueError,
                     "dictionary update sequence element #%zd has length %zd; 2 is required",
                     number, PySequence_Fast_GET_SIZE(fast));
    }
    else {
        rc = set_and_release(self, Py_NewRef(PySequence_Fast_GET_ITEM(fast, 0)),
                             Py_NewRef(PySequence_Fast_GET_ITEM(fast, 1)));
    }
    Py_DECREF(fast);
    return rc;
}

static int
update_from_pairs(PyObject *self, PyObject *pairs)
{
    PyObject *iterator = PyObject_GetIter(pairs), *pair;

    if (iterator == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; (pair = PyIter_Next(iterator)) != NULL; i++) {
        int rc = update_from_pair(self, pair, i);
        Py_DECREF(pair);
        if (rc < 0) {
            break;
        }
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : 0;
}

/* True for a dict or a frozendict.  As with dict(), derived classes count unless they have another iterator; their
 * other methods are not called. */
static bool
is_plain_dict(PyObject *source)
{
    return PyAnyDict_Check(source) && Py_TYPE(source)->tp_iter == PyDict_Type.tp_iter;
}

static bool
is_plain_compact(const struct plus_compact_state *state, PyObject *source)
{
    return plus_compact_check(state, source) &&
           Py_TYPE(source)->tp_iter == state->compact_dict->tp_iter;
}

/* The number of entries, if it is known without running code; else 0. */
static Py_ssize_t
size_of(const struct plus_compact_state *state, PyObject *source)
{
    if (is_plain_dict(source)) {
        return PyDict_GET_SIZE(source);
    }
    if (is_plain_compact(state, source)) {
        return plus_compact_used(plus_compact_of(source));
    }
    bool tells = PyList_CheckExact(source) || PyTuple_CheckExact(source) ||
                 PyAnySet_CheckExact(source) || PyDictViewSet_Check(source) ||
                 Py_IS_TYPE(source, &PyRange_Type);
    return tells ? PyObject_Size(source) : 0;
}

void
plus_compact_reserve_for(const struct plus_compact_state *state, PyObject *self, PyObject *source)
{
    if (plus_compact_of(self)->word != 0) {
        return;
    }
    Py_ssize_t size = size_of(state, source);
    if (size < 0 || plus_compact_reserve(plus_compact_of(self), size) < 0) {
        PyErr_Clear(); /* too many, but keys may be equal, or the first element no pair */
    }
}

int
plus_compact_update(PyObject *self, PyObject *source)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(self));

    if (state == NULL) {
        return -1;
    }
    bool is_new = plus_compact_of(self)->word == 0;
    plus_compact_reserve_for(state, self, source);
    int rc;
    if (is_plain_dict(source)) {
        rc = update_from_dict(self, source);
    }
    else if (is_plain_compact(state, source)) {
        rc = update_from_compact(self, source);
    }
    else {
        PyObject *keys = PyObject_GetAttrString(source, "keys");
        if (keys == NULL && !PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        rc = keys != NULL ? update_from_mapping(self, source) : update_from_pairs(self, source);
        Py_XDECREF(keys);
    }
    if (is_new) {
        plus_compact_fit(plus_compact_of(self));
    }
    return rc;
}
