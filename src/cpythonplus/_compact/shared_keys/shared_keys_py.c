/* The C functions for shared_keys: they take rows, and return dicts that share their keys.
 *
 * A row that cannot share its keys is given to dict(), whose result and errors are returned. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../state.h"
#include "key_sets.h"

#ifndef Py_GIL_DISABLED
#define CAPSULE "cpythonplus.key_sets"

static void
free_sets(PyObject *capsule)
{
    plus_key_sets_free(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* The key sets of this interpreter, made for the first row; NULL with an exception. */
static struct plus_key_sets *
sets_of(PyObject *module)
{
    struct plus_compact_state *state = plus_compact_state(module);

    if (state->shared_keys == NULL) {
        struct plus_key_sets *sets = plus_key_sets_new();
        PyObject *capsule =
            sets != NULL ? PyCapsule_New(sets, CAPSULE, free_sets) : PyErr_NoMemory();
        if (capsule == NULL) {
            plus_key_sets_free(sets);
            return NULL;
        }
        Py_XSETREF(state->shared_keys, capsule);
    }
    return PyCapsule_GetPointer(state->shared_keys, CAPSULE);
}

static void
add(struct plus_row *row, PyObject *key, PyObject *value)
{
    row->keys[row->count] = Py_NewRef(key);
    row->values[row->count++] = Py_NewRef(value);
}

static void
release(struct plus_row *row)
{
    while (row->count > 0) {
        row->count--;
        Py_DECREF(row->keys[row->count]);
        Py_DECREF(row->values[row->count]);
    }
}

/* True if the pairs could share keys: then they are in *row. */
static bool
take_pairs(struct plus_row *row, PyObject *pairs)
{
    if (!PyList_CheckExact(pairs) || PyList_GET_SIZE(pairs) > PLUS_KEY_SET_MOST) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
            !PyUnicode_CheckExact(PyTuple_GET_ITEM(pair, 0))) {
            return false;
        }
        add(row, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    }
    return row->count > 0;
}

static bool
take_dict(struct plus_row *row, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    if (PyDict_GET_SIZE(dict) > PLUS_KEY_SET_MOST) {
        return false;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key)) {
            return false;
        }
        add(row, key, value);
    }
    return row->count > 0;
}

/* A dict of the row; NULL without an exception if it cannot share. */
static PyObject *
dict_of(PyObject *module, struct plus_row *row)
{
    struct plus_key_sets *sets = sets_of(module);

    return sets != NULL ? plus_key_sets_dict(sets, row) : NULL;
}

/* The dict itself, or an equal one that shares its keys. */
static PyObject *
share(PyObject *module, PyObject *dict)
{
    struct plus_row row = {0};
    PyObject *shared = take_dict(&row, dict) ? dict_of(module, &row) : NULL;

    release(&row);
    return shared != NULL || PyErr_Occurred() ? shared : Py_NewRef(dict);
}
#else
/* The table of key sets is guarded by the GIL. */
PLUS_RETURNS(share, Py_NewRef(arg))
#endif

static PyObject *
shared_from(PyObject *module, PyObject *source)
{
    PyObject *dict = PyObject_CallOneArg((PyObject *)&PyDict_Type, source);
    PyObject *shared = dict != NULL ? share(module, dict) : NULL;

    Py_XDECREF(dict);
    return shared;
}

static PyObject *
shared_dict(PyObject *module, PyObject *pairs)
{
#ifndef Py_GIL_DISABLED
    struct plus_row row = {0};
    PyObject *shared = take_pairs(&row, pairs) ? dict_of(module, &row) : NULL;

    release(&row);
    if (shared != NULL || PyErr_Occurred()) {
        return shared;
    }
#endif
    return shared_from(module, pairs);
}

static PyObject *
memory_share_row(PyObject *module, PyObject *row)
{
    if (PyDict_CheckExact(row)) {
        return share(module, row);
    }
    return PyDict_Check(row) ? Py_NewRef(row) : shared_from(module, row);
}

static PyObject *
memory_sharing_refusal(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
#ifdef Py_GIL_DISABLED
    return PyUnicode_FromString(PLUS_FREE_THREADED);
#else
    const char *refusal = plus_key_sets_refusal();

    if (PyErr_Occurred()) {
        return NULL;
    }
    return refusal != NULL ? PyUnicode_FromString(refusal) : Py_NewRef(Py_None);
#endif
}

PyMethodDef plus_shared_keys_methods[] = {
    PLUS_METHOD(
        "shared_dict", shared_dict, METH_O, "$module, pairs, /",
        "Return a dict of the pairs that stores its keys once with all others that have them.\n\n"
        "    json.loads(text, object_pairs_hook=memory.shared_dict)\n\n"
        "pairs: whatever dict() takes: pairs of a key and a value, or a mapping.\n\n"
        "An ordinary dict in every respect, made from the second one on with the same keys in "
        "the\n"
        "same order.  It takes the memory of its values, and an ordinary one's as soon as "
        "another\n"
        "key is added.  Keys are shared if they are 1 to 29 strings; else, and where the\n"
        "interpreter does not share them, the result is dict(pairs).\n\n"
        "Raises what dict(pairs) raises."),
    PLUS_METHOD("memory_share_row", memory_share_row, METH_O, "$module, row, /",
                "Return a dict that is equal to the row and shares its keys, or the row itself."),
    PLUS_METHOD("memory_sharing_refusal", memory_sharing_refusal, METH_NOARGS, "$module, /",
                "Return why dicts cannot share their keys here, or None."),
    {NULL, NULL, 0, NULL},
};
