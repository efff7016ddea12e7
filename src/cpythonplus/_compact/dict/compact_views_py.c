/* Iterators and views of a CompactDict.
 *
 * An iterator remembers the number of entries and the number of those still to come.  If the number of entries has
 * changed, entries were added or deleted; if the iterator meets more entries than were still to come, both has
 * happened.  Like dict's iterators it raises RuntimeError in either case. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "compact_dict.h"

/* ---- iterators ----------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD PyObject *dict; /* NULL: the iterator has ended */
    /* The tuple that was returned last, used again if there is no other reference. */
    PyObject *item;
    Py_ssize_t used, at, left;
    enum plus_compact_part part;
    bool reversed;
} iterator;

PyObject *
plus_compact_iterate(PyObject *dict, enum plus_compact_part part, bool reversed)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(dict));
    iterator *self = state != NULL ? PyObject_GC_New(iterator, state->compact_iterator) : NULL;

    if (self == NULL) {
        return NULL;
    }
    self->dict = Py_NewRef(dict);
    self->item = NULL;
    self->used = self->left = plus_compact_used(plus_compact_of(dict));
    self->at = reversed ? plus_compact_filled(plus_compact_of(dict)) - 1 : 0;
    self->part = part;
    self->reversed = reversed;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* The tuple of an item: the last one again, if there is no other reference to it. */
static inline PyObject *
item_of(iterator *self, PyObject *key, PyObject *value)
{
    PyObject *item = self->item;

    if (item != NULL && Py_REFCNT(item) == 1) {
        PyObject *old_key = PyTuple_GET_ITEM(item, 0), *old_value = PyTuple_GET_ITEM(item, 1);
        Py_INCREF(item);
        PyTuple_SET_ITEM(item, 0, Py_NewRef(key));
        PyTuple_SET_ITEM(item, 1, Py_NewRef(value));
#if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)item)->ob_hash = -1; /* drop the cached hash of the item before */
#endif
        /* The collector may have untracked the tuple with its former contents. */
        if (!PyObject_GC_IsTracked(item)) {
            PyObject_GC_Track(item);
        }
        Py_DECREF(old_key);
        Py_DECREF(old_value);
        return item;
    }
    /* Hold key and value: on 3.11 making a tuple may run the collector, and a finaliser may remove them from the
     * dict. */
    Py_INCREF(key);
    Py_INCREF(value);
    item = PyTuple_Pack(2, key, value);
    Py_DECREF(key);
    Py_DECREF(value);
    if (item != NULL) {
        Py_XSETREF(self->item, Py_NewRef(item));
    }
    return item;
}

static PyObject *
iterator_next(PyObject *op)
{
    iterator *self = (iterator *)op;

    if (self->dict == NULL) {
        return NULL;
    }
    const struct plus_compact *table = plus_compact_of(self->dict);
    if (self->used != plus_compact_used(table)) {
        PyErr_SetString(PyExc_RuntimeError, "dictionary changed size during iteration");
        self->used = -1; /* each further call fails, too */
        return NULL;
    }
    Py_ssize_t at = self->at;
    const struct plus_compact_entry *entry = NULL;
    if (at >= 0 && at < plus_compact_filled(table)) {
        entry = plus_compact_at(table, at);
    }
    if (entry == NULL || entry->key == NULL) {
        at = self->reversed ? plus_compact_previous(table, at) : plus_compact_next(table, at);
        if (at < 0) {
            Py_CLEAR(self->dict);
            return NULL;
        }
        entry = plus_compact_at(table, at);
    }
    if (self->left == 0) {
        PyErr_SetString(PyExc_RuntimeError, "dictionary keys changed during iteration");
        Py_CLEAR(self->dict);
        return NULL;
    }
    self->at = self->reversed ? at - 1 : at + 1;
    self->left--;
    if (self->part == PLUS_COMPACT_ITEMS) {
        return item_of(self, entry->key, entry->value);
    }
    return Py_NewRef(self->part == PLUS_COMPACT_KEYS ? entry->key : entry->value);
}

static PyObject *
iterator_length_hint(PyObject *op, PyObject *unused)
{
    const iterator *self = (iterator *)op;
    bool counts =
        self->dict != NULL && self->used == plus_compact_used(plus_compact_of(self->dict));

    return PyLong_FromSsize_t(counts ? self->left : 0);
}

/* A list of the entries still to come. */
static PyObject *
list_of_rest(const iterator *self)
{
    if (self->dict == NULL) {
        return PyList_New(0);
    }
    /* Hold the dict: on 3.11 the collector may run, and a finaliser may exhaust this iterator, which drops its
     * reference. */
    PyObject *dict = Py_NewRef(self->dict), *rest = NULL;
    iterator *copy = (iterator *)plus_compact_iterate(dict, self->part, self->reversed);
    if (copy != NULL) {
        copy->used = self->used;
        copy->at = self->at;
        copy->left = self->left;
        rest = PySequence_List((PyObject *)copy);
        Py_DECREF(copy);
    }
    Py_DECREF(dict);
    return rest;
}

/* Reduce to an iterator over a list; this iterator stays where it is. */
static PyObject *
iterator_reduce(PyObject *op, PyObject *unused)
{
    PyObject *iter = plus_import_from("builtins", "iter");
    PyObject *rest = iter != NULL ? list_of_rest((iterator *)op) : NULL;
    PyObject *reduced = rest != NULL ? PyTuple_Pack(1, rest) : NULL;

    if (reduced != NULL) {
        Py_SETREF(reduced, PyTuple_Pack(2, iter, reduced));
    }
    Py_XDECREF(iter);
    Py_XDECREF(rest);
    return reduced;
}

static int
iterator_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((iterator *)op)->dict);
    Py_VISIT(((iterator *)op)->item);
    return 0;
}

/* An iterator may be a cycle by itself: its last item may refer to it. */
static int
iterator_clear(PyObject *op)
{
    Py_CLEAR(((iterator *)op)->dict);
    Py_CLEAR(((iterator *)op)->item);
    return 0;
}

static void
iterator_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    (void)iterator_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef iterator_methods[] = {
    {"__length_hint__", iterator_length_hint, METH_NOARGS, NULL},
    {"__reduce__", iterator_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot iterator_slots[] = {
    {Py_tp_dealloc, iterator_dealloc},
    {Py_tp_traverse, iterator_traverse},
    {Py_tp_clear, iterator_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, iterator_next},
    {Py_tp_methods, iterator_methods},
    {0, NULL},
};

/* ---- views --------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD PyObject *dict; /* never NULL */
    enum plus_compact_part part;
} view;

static PyTypeObject *
view_type(const struct plus_compact_state *state, enum plus_compact_part part)
{
    switch (part) {
    case PLUS_COMPACT_KEYS:
        return state->compact_keys;
    case PLUS_COMPACT_VALUES:
        return state->compact_values;
    default:
        return state->compact_items;
    }
}

PyObject *
plus_compact_view(PyObject *dict, enum plus_compact_part part)
{
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(dict));
    view *self = state != NULL ? PyObject_GC_New(view, view_type(state, part)) : NULL;

    if (self != NULL) {
        self->dict = Py_NewRef(dict);
        self->part = part;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

static PyObject *
dict_of(PyObject *op)
{
    return ((view *)op)->dict;
}

static Py_ssize_t
view_length(PyObject *op)
{
    return plus_compact_used(plus_compact_of(dict_of(op)));
}

static PyObject *
view_iter(PyObject *op)
{
    return plus_compact_iterate(dict_of(op), ((view *)op)->part, false);
}

PLUS_RETURNS(view_reversed, plus_compact_iterate(dict_of(self), ((view *)self)->part, true))

static int
keys_contains(PyObject *op, PyObject *key)
{
    return PySequence_Contains(dict_of(op), key);
}

static int
items_contains(PyObject *op, PyObject *item)
{
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2) {
        return 0;
    }
    PyObject *found = plus_compact_get(dict_of(op), PyTuple_GET_ITEM(item, 0));
    if (found == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_INCREF(found);
    int same = PyObject_RichCompareBool(found, PyTuple_GET_ITEM(item, 1), Py_EQ);
    Py_DECREF(found);
    return same;
}

PLUS_GETS(view_mapping, PyDictProxy_New(dict_of(self)))

static PyObject *
view_repr(PyObject *op)
{
    int entered = Py_ReprEnter(op);
    PyObject *repr = NULL;

    if (entered != 0) {
        return entered > 0 ? PyUnicode_FromString("...") : NULL;
    }
    PyObject *list = PySequence_List(op);
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(op), "__name__");
    if (list != NULL && name != NULL) {
        repr = PyUnicode_FromFormat("%U(%R)", name, list);
    }
    Py_XDECREF(list);
    Py_XDECREF(name);
    Py_ReprLeave(op);
    return repr;
}

/* A set of the left operand, changed by a method of set with the right one. */
static PyObject *
set_and(PyObject *left, const char *method, PyObject *right)
{
    PyObject *set = PySet_New(left);
    PyObject *done = set != NULL ? PyObject_CallMethod(set, method, "(O)", right) : NULL;

    if (done == NULL) {
        Py_CLEAR(set);
    }
    Py_XDECREF(done);
    return set;
}

PLUS_RETURNS(view_and, set_and(self, "intersection_update", arg))
PLUS_RETURNS(view_or, set_and(self, "update", arg))
PLUS_RETURNS(view_subtract, set_and(self, "difference_update", arg))
PLUS_RETURNS(view_xor, set_and(self, "symmetric_difference_update", arg))

/* 1 if `outer` contains an element of `inner` (contained: 1), or lacks one (0); 0: none; -1 with an exception. */
static int
has_one(PyObject *outer, PyObject *inner, int contained)
{
    PyObject *elements = PyObject_GetIter(inner), *each;
    int found = !contained;

    while (elements != NULL && found == !contained && (each = PyIter_Next(elements)) != NULL) {
        found = PySequence_Contains(outer, each);
        Py_DECREF(each);
    }
    Py_XDECREF(elements);
    return PyErr_Occurred() ? -1 : found == contained;
}

static bool
is_set(PyObject *op)
{
    return PyAnySet_Check(op) || PyDictViewSet_Check(op) ||
           (Py_TYPE(op)->tp_as_number != NULL && Py_TYPE(op)->tp_as_number->nb_xor == view_xor);
}

static PyObject *
view_richcompare(PyObject *self, PyObject *other, int op)
{
    if (!is_set(other)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    Py_ssize_t own = view_length(self), others = PyObject_Size(other);
    bool is_above = op == Py_GT || op == Py_GE, is_below = op == Py_LT || op == Py_LE;
    bool fits = own < others ? is_below : own > others ? is_above : op != Py_LT && op != Py_GT;

    if (others < 0) {
        return NULL;
    }
    int lacks = fits ? has_one(is_above ? self : other, is_above ? other : self, 0) : 1;

    return lacks < 0 ? NULL : PyBool_FromLong((lacks == 0) != (op == Py_NE));
}

static PyObject *
view_isdisjoint(PyObject *self, PyObject *other)
{
    int shared = has_one(self, other, 1);

    return shared < 0 ? NULL : PyBool_FromLong(!shared);
}

static int
view_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((view *)op)->dict);
    return 0;
}

static void
view_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    Py_DECREF(dict_of(op));
    type->tp_free(op);
    Py_DECREF(type);
}

static PyGetSetDef view_members[] = {
    {"mapping", view_mapping, NULL, PyDoc_STR("The dict, to be read only."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef set_methods[] = {
    {"__reversed__", view_reversed, METH_NOARGS, NULL},
    PLUS_METHOD("isdisjoint", view_isdisjoint, METH_O, "$self, other, /",
                "Whether both have nothing in common."),
    {NULL, NULL, 0, NULL},
};
static PyMethodDef values_methods[] = {
    {"__reversed__", view_reversed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define VIEW_SLOTS                                                                                 \
    {Py_tp_dealloc, view_dealloc}, {Py_tp_traverse, view_traverse}, {Py_tp_repr, view_repr},       \
        {Py_tp_getset, view_members}, {Py_tp_iter, view_iter},                                     \
    {                                                                                              \
        Py_sq_length, view_length                                                                  \
    }
#define SET_SLOTS                                                                                  \
    {Py_tp_richcompare, view_richcompare}, {Py_nb_and, view_and}, {Py_nb_or, view_or},             \
        {Py_nb_subtract, view_subtract}, {Py_nb_xor, view_xor}, {Py_tp_methods, set_methods},      \
    {                                                                                              \
        Py_tp_hash, PyObject_HashNotImplemented                                                    \
    }

static PyType_Slot keys_slots[] = {
    VIEW_SLOTS,
    SET_SLOTS,
    {Py_sq_contains, keys_contains},
    {0, NULL},
};
static PyType_Slot items_slots[] = {
    VIEW_SLOTS,
    SET_SLOTS,
    {Py_sq_contains, items_contains},
    {0, NULL},
};
static PyType_Slot values_slots[] = {
    VIEW_SLOTS,
    {Py_tp_methods, values_methods},
    {0, NULL},
};

static int
add(PyObject *module, PyTypeObject **made, const char *name, size_t size, PyType_Slot *slots)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = (int)size,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                 Py_TPFLAGS_IMMUTABLETYPE,
        .slots = slots,
    };

    *made = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return *made != NULL ? PyModule_AddType(module, *made) : -1;
}

int
plus_compact_views_exec(PyObject *module, struct plus_compact_state *state)
{
    if (add(module, &state->compact_iterator, "cpythonplus.memory.CompactIterator",
            sizeof(iterator), iterator_slots) < 0 ||
        add(module, &state->compact_keys, "cpythonplus.memory.CompactKeys", sizeof(view),
            keys_slots) < 0 ||
        add(module, &state->compact_values, "cpythonplus.memory.CompactValues", sizeof(view),
            values_slots) < 0) {
        return -1;
    }
    return add(module, &state->compact_items, "cpythonplus.memory.CompactItems", sizeof(view),
               items_slots);
}
