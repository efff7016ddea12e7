/* See compact_dict.h. */
#include "compact_dict.h"

#include "../../_base/raise.h"

PyObject *
plus_compact_new(PyTypeObject *type)
{
    if (plus_refuses_free_threaded()) {
        return NULL;
    }
    if (type->tp_vectorcall == NULL) { /* a derived class, whose instances may have a dict */
        PyObject *self = type->tp_alloc(type, 0);
        return self;
    }
    plus_compact_dict *self = PyObject_GC_New(plus_compact_dict, type);
    if (self != NULL) {
        self->table.word = 0;
    }
    return (PyObject *)self;
}

PyObject *
plus_compact_copied(PyObject *self)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(self));
    PyObject *copy = state != NULL ? plus_compact_new(state->compact_dict) : NULL;

    if (copy != NULL && plus_compact_copy(plus_compact_of(self), plus_compact_of(copy)) < 0) {
        Py_CLEAR(copy);
    }
    if (copy != NULL && PyObject_GC_IsTracked(self)) {
        PyObject_GC_Track(copy);
    }
    return copy;
}

/* Track `self` if `held` may be part of a cycle: a dict of strings and numbers stays untracked. */
static void
track_for(PyObject *self, PyObject *held)
{
    /* A tuple that the collector has untracked cannot be part of a cycle, ever. */
    bool may_refer =
        PyObject_IS_GC(held) && (!PyTuple_CheckExact(held) || PyObject_GC_IsTracked(held));

    if (may_refer && !PyObject_GC_IsTracked(self)) {
        PyObject_GC_Track(self);
    }
}

PyObject *
plus_compact_get(PyObject *self, PyObject *key)
{
    Py_ssize_t at = plus_compact_look_up(plus_compact_of(self), key);

    return at >= 0 ? plus_compact_at(plus_compact_of(self), at)->value : NULL;
}

int
plus_compact_add(PyObject *self, PyObject *key, Py_hash_t hash, PyObject *value)
{
    if (plus_compact_append(plus_compact_of(self), key, hash, value) < 0) {
        return -1;
    }
    track_for(self, key);
    track_for(self, value);
    return 0;
}

static int
set_hashed(PyObject *self, PyObject *key, Py_hash_t hash, PyObject *value)
{
    Py_ssize_t at = plus_compact_find(plus_compact_of(self), key, hash);

    if (at < 0) {
        return at == -2 ? -1 : plus_compact_add(self, key, hash, value);
    }
    track_for(self, value);
    struct plus_compact_entry *entry = plus_compact_at(plus_compact_of(self), at);
    PyObject *old = entry->value;
    entry->value = Py_NewRef(value);
    Py_DECREF(old);
    return 0;
}

int
plus_compact_set(PyObject *self, PyObject *key, PyObject *value)
{
    Py_hash_t hash = plus_compact_hash_of(key);

    return hash != -1 ? set_hashed(self, key, hash, value) : -1;
}

int
plus_compact_take(PyObject *self, PyObject *key, PyObject **value)
{
    Py_ssize_t at = plus_compact_look_up(plus_compact_of(self), key);
    PyObject *stored;

    if (at < 0) {
        return at == -2 ? -1 : 0;
    }
    plus_compact_remove(plus_compact_of(self), at, &stored, value);
    Py_DECREF(stored);
    return 1;
}
