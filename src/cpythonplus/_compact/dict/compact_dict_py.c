/* The type CompactDict: the whole API of dict over a compact table.
 *
 * Whenever other code may run (a comparison, a hash, a deallocation), the table may be changed afterwards.  So a
 * position is used at once or not at all, removed references are released last, and code that iterates over a mapping
 * checks after each step that its size is the same. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "compact_dict.h"

/* ---- one entry ----------------------------------------------------------------------------------- */

/* Raise KeyError; a tuple as such would become its arguments. */
static void
raise_key_error(PyObject *key)
{
    PyObject *error = PyObject_CallOneArg(PyExc_KeyError, key);

    if (error != NULL) {
        PyErr_SetObject(PyExc_KeyError, error);
        Py_DECREF(error);
    }
}

static int
ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    if (value != NULL) {
        return plus_compact_set(self, key, value);
    }
    int taken = plus_compact_take(self, key, &value);
    if (taken == 0) {
        raise_key_error(key);
    }
    if (taken <= 0) {
        return -1;
    }
    Py_DECREF(value);
    return 0;
}

/* The class's attribute, found as the interpreter finds special methods: neither in the object nor in the metaclass.  A
 * new reference; NULL, without an exception if there is none. */
static PyObject *
class_attribute(PyTypeObject *type, const char *name)
{
    PyObject *key = PyUnicode_InternFromString(name), *mro = Py_XNewRef(type->tp_mro),
             *found = NULL;

    for (Py_ssize_t i = 0; key != NULL && mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        /* Built-in classes, which have their dict elsewhere, have none of these names. */
        PyObject *dict = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_dict;
        found = dict != NULL ? Py_XNewRef(PyDict_GetItemWithError(dict, key)) : NULL;
        if (found != NULL || PyErr_Occurred()) {
            break;
        }
    }
    Py_XDECREF(key);
    Py_XDECREF(mro);
    return found;
}

static PyObject *
call_missing(PyObject *method, PyObject *self, PyObject *key)
{
    descrgetfunc get = Py_TYPE(method)->tp_descr_get;

    if (PyType_HasFeature(Py_TYPE(method), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
        return PyObject_CallFunctionObjArgs(method, self, key, NULL);
    }
    PyObject *bound =
        get != NULL ? get(method, self, (PyObject *)Py_TYPE(self)) : Py_NewRef(method);
    PyObject *value = bound != NULL ? PyObject_CallOneArg(bound, key) : NULL;
    Py_XDECREF(bound);
    return value;
}

/* Call __missing__() of a derived class, or raise KeyError. */
static PyObject *
missing(PyObject *self, PyObject *key)
{
    PyObject *method = NULL;

    if (Py_TYPE(self)->tp_vectorcall == NULL) {
        method = class_attribute(Py_TYPE(self), "__missing__");
    }
    if (method == NULL) {
        if (!PyErr_Occurred()) {
            raise_key_error(key);
        }
        return NULL;
    }
    PyObject *value = call_missing(method, self, key);
    Py_DECREF(method);
    return value;
}

static PyObject *
subscript(PyObject *self, PyObject *key)
{
    PyObject *value = plus_compact_get(self, key);

    if (value != NULL) {
        return Py_NewRef(value);
    }
    return PyErr_Occurred() ? NULL : missing(self, key);
}

static int
contains(PyObject *self, PyObject *key)
{
    Py_ssize_t at = plus_compact_look_up(plus_compact_of(self), key);

    return at == -2 ? -1 : at >= 0;
}

static Py_ssize_t
length(PyObject *self)
{
    return plus_compact_used(plus_compact_of(self));
}

/* ---- methods ------------------------------------------------------------------------------------- */

static int
update_with(PyObject *self, PyObject *args, PyObject *kwargs, const char *name)
{
    PyObject *source = NULL;

    if (!PyArg_UnpackTuple(args, name, 0, 1, &source) ||
        (kwargs != NULL && !PyArg_ValidateKeywordArguments(kwargs)) ||
        (source != NULL && plus_compact_update(self, source) < 0)) {
        return -1;
    }
    return kwargs != NULL ? plus_compact_update(self, kwargs) : 0;
}

static PyObject *
compact_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return plus_compact_new(type);
}

static int
compact_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return update_with(self, args, kwargs, "CompactDict");
}

static PyObject *
compact_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);

    if (nargs > 1) {
        PyErr_Format(PyExc_TypeError, "CompactDict expected at most 1 argument, got %zd", nargs);
        return NULL;
    }
    PyObject *self = plus_compact_new((PyTypeObject *)type);
    if (self == NULL) {
        return NULL;
    }
    int rc = nargs == 1 ? plus_compact_update(self, args[0]) : 0;
    for (Py_ssize_t i = 0; rc == 0 && names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        rc = plus_compact_set(self, PyTuple_GET_ITEM(names, i), args[nargs + i]);
    }
    if (rc < 0) {
        Py_CLEAR(self);
    }
    return self;
}

static PyObject *
compact_update(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return update_with(self, args, kwargs, "update") < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
compact_get_method(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2) {
        PyErr_Format(PyExc_TypeError, "get expected %s argument%s, got %zd",
                     nargs < 1 ? "at least 1" : "at most 2", nargs < 1 ? "" : "s", nargs);
        return NULL;
    }
    Py_ssize_t at = plus_compact_look_up(plus_compact_of(self), args[0]);
    if (at >= 0) {
        return Py_NewRef(plus_compact_at(plus_compact_of(self), at)->value);
    }
    return at == -2 ? NULL : Py_NewRef(nargs == 2 ? args[1] : Py_None);
}

static PyObject *
compact_setdefault(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2) {
        PyErr_Format(PyExc_TypeError, "setdefault expected %s argument%s, got %zd",
                     nargs < 1 ? "at least 1" : "at most 2", nargs < 1 ? "" : "s", nargs);
        return NULL;
    }
    PyObject *value = nargs == 2 ? args[1] : Py_None;
    Py_hash_t hash = plus_compact_hash_of(args[0]);
    Py_ssize_t at = hash != -1 ? plus_compact_find(plus_compact_of(self), args[0], hash) : -2;
    if (at >= 0) {
        return Py_NewRef(plus_compact_at(plus_compact_of(self), at)->value);
    }
    return at == -2 || plus_compact_add(self, args[0], hash, value) < 0 ? NULL : Py_NewRef(value);
}

static PyObject *
compact_pop(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *value;

    if (nargs < 1 || nargs > 2) {
        PyErr_Format(PyExc_TypeError, "pop expected %s argument%s, got %zd",
                     nargs < 1 ? "at least 1" : "at most 2", nargs < 1 ? "" : "s", nargs);
        return NULL;
    }
    /* As with dict, an empty one does not compute the hash. */
    int taken = length(self) == 0 ? 0 : plus_compact_take(self, args[0], &value);
    if (taken != 0) {
        return taken > 0 ? value : NULL;
    }
    if (nargs == 2) {
        return Py_NewRef(args[1]);
    }
    raise_key_error(args[0]);
    return NULL;
}

static PyObject *
compact_popitem(PyObject *self, PyObject *unused)
{
    PyObject *item = PyTuple_New(2), *key, *value;

    if (item == NULL) {
        return NULL;
    }
    if (length(self) == 0) {
        Py_DECREF(item);
        PyErr_SetString(PyExc_KeyError, "popitem(): dictionary is empty");
        return NULL;
    }
    plus_compact_pop(plus_compact_of(self), &key, &value);
    PyTuple_SET_ITEM(item, 0, key);
    PyTuple_SET_ITEM(item, 1, value);
    return item;
}

PLUS_DOES(compact_clear_method, plus_compact_clear(plus_compact_of(self)))
PLUS_RETURNS(compact_copy, plus_compact_copied(self))

static int
fill_from_keys(PyObject *dict, PyObject *keys, PyObject *value)
{
    PyObject *iterator = PyObject_GetIter(keys), *key;
    int rc = iterator != NULL ? 0 : -1;

    while (rc == 0 && (key = PyIter_Next(iterator)) != NULL) {
        rc = PyObject_SetItem(dict, key, value);
        Py_DECREF(key);
    }
    Py_XDECREF(iterator);
    return PyErr_Occurred() ? -1 : rc;
}

static PyObject *
compact_fromkeys(PyObject *type, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2) {
        PyErr_Format(PyExc_TypeError, "fromkeys expected %s argument%s, got %zd",
                     nargs < 1 ? "at least 1" : "at most 2", nargs < 1 ? "" : "s", nargs);
        return NULL;
    }
    PyObject *dict = PyObject_CallNoArgs(type);
    if (dict == NULL) {
        return NULL;
    }
    const struct plus_compact_state *state = plus_compact_state_of_type((PyTypeObject *)type);
    bool is_ours = state != NULL && Py_IS_TYPE(dict, state->compact_dict);
    if (is_ours) {
        plus_compact_reserve_for(state, dict, args[0]);
    }
    if (state == NULL || fill_from_keys(dict, args[0], nargs == 2 ? args[1] : Py_None) < 0) {
        Py_DECREF(dict);
        return NULL;
    }
    if (is_ours) {
        plus_compact_fit(plus_compact_of(dict));
    }
    return dict;
}

PLUS_RETURNS(compact_keys, plus_compact_view(self, PLUS_COMPACT_KEYS))
PLUS_RETURNS(compact_values, plus_compact_view(self, PLUS_COMPACT_VALUES))
PLUS_RETURNS(compact_items, plus_compact_view(self, PLUS_COMPACT_ITEMS))

static PyObject *
compact_iter(PyObject *self)
{
    return plus_compact_iterate(self, PLUS_COMPACT_KEYS, false);
}

PLUS_RETURNS(compact_reversed, plus_compact_iterate(self, PLUS_COMPACT_KEYS, true))

PLUS_RETURNS(compact_sizeof, PyLong_FromSsize_t(Py_TYPE(self)->tp_basicsize +
                                                plus_compact_bytes(plus_compact_of(self))))

/* The result of a method that a class may have; NULL, without an exception if it has none. */
static PyObject *
call_if_there(PyObject *self, const char *name)
{
    PyObject *method = PyObject_GetAttrString(self, name);

    if (method == NULL) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
        }
        return NULL;
    }
    PyObject *result = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    return result;
}

/* The call that makes a copy by __new__() alone: copyreg's function and its arguments.  A class may add arguments. */
static PyObject *
making_call(PyObject *self)
{
    PyObject *both = call_if_there(self, "__getnewargs_ex__"), *call = NULL, *args, *kwargs;

    if (both != NULL) {
        if (PyArg_Parse(both, "(O!O!);__getnewargs_ex__() must return a tuple and a dict",
                        &PyTuple_Type, &args, &PyDict_Type, &kwargs)) {
            call = Py_BuildValue("N(OOO)", plus_import_from("copyreg", "__newobj_ex__"),
                                 Py_TYPE(self), args, kwargs);
        }
        Py_DECREF(both);
        return call;
    }
    PyObject *more = PyErr_Occurred() ? NULL : call_if_there(self, "__getnewargs__");
    if (!PyErr_Occurred()) {
        PyObject *class = PyTuple_Pack(1, Py_TYPE(self));
        args = class != NULL && more != NULL ? PySequence_Concat(class, more) : Py_XNewRef(class);
        call = args != NULL ? Py_BuildValue("NN", plus_import_from("copyreg", "__newobj__"), args)
                            : NULL;
        Py_XDECREF(class);
    }
    Py_XDECREF(more);
    return call;
}

/* Like a class derived from dict, a copy is made without __init__(); then the items are set one by one, and may refer
 * to the copy. */
static PyObject *
compact_reduce(PyObject *self, PyObject *unused)
{
    PyObject *call = making_call(self);
    PyObject *state = call != NULL ? PyObject_CallMethod(self, "__getstate__", NULL) : NULL;
    PyObject *items = state != NULL ? PyObject_CallMethod(self, "items", NULL) : NULL;
    PyObject *iterator = items != NULL ? PyObject_GetIter(items) : NULL;
    PyObject *reduced = NULL;

    if (iterator != NULL) {
        reduced = Py_BuildValue("OOOOO", PyTuple_GET_ITEM(call, 0), PyTuple_GET_ITEM(call, 1),
                                state, Py_None, iterator);
    }
    Py_XDECREF(call);
    Py_XDECREF(state);
    Py_XDECREF(items);
    Py_XDECREF(iterator);
    return reduced;
}

static int
compact_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct plus_compact *table = plus_compact_of(self);

    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < plus_compact_filled(table); i++) {
        const struct plus_compact_entry *entry = plus_compact_at(table, i);
        Py_VISIT(entry->key);
        Py_VISIT(entry->value);
    }
    return 0;
}

static int
compact_clear(PyObject *self)
{
    plus_compact_clear(plus_compact_of(self));
    return 0;
}

static void
compact_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, compact_dealloc) plus_compact_clear(plus_compact_of(self));
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

static PyMethodDef methods[] = {
    PLUS_METHOD("__reversed__", compact_reversed, METH_NOARGS, "$self, /",
                "Return an iterator over the keys, the last one first."),
    PLUS_METHOD("__sizeof__", compact_sizeof, METH_NOARGS, "$self, /",
                "Return the bytes of the object and its table."),
    PLUS_METHOD("__reduce__", compact_reduce, METH_NOARGS, "$self, /", "For pickle and copy."),
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, PyDoc_STR("See PEP 585.")},
    PLUS_METHOD("clear", compact_clear_method, METH_NOARGS, "$self, /",
                "Remove all entries and give their memory back."),
    PLUS_METHOD("copy", compact_copy, METH_NOARGS, "$self, /",
                "Return another one with the same entries and no room for more."),
    PLUS_METHOD_KW("fromkeys", compact_fromkeys, METH_FASTCALL | METH_CLASS,
                   "$type, iterable, value=None, /", "Return one with a value for each key."),
    PLUS_METHOD_KW("get", compact_get_method, METH_FASTCALL, "$self, key, default=None, /",
                   "Return the value of a key, else the default."),
    PLUS_METHOD("items", compact_items, METH_NOARGS, "$self, /", "Return a view of the items."),
    PLUS_METHOD("keys", compact_keys, METH_NOARGS, "$self, /", "Return a view of the keys."),
    PLUS_METHOD_KW("pop", compact_pop, METH_FASTCALL, "$self, key, default=<unrepresentable>, /",
                   "Remove a key and return its value, else the default; KeyError without one."),
    PLUS_METHOD("popitem", compact_popitem, METH_NOARGS, "$self, /",
                "Remove and return the last item; KeyError if there is none."),
    PLUS_METHOD_KW("setdefault", compact_setdefault, METH_FASTCALL, "$self, key, default=None, /",
                   "Return the value of a key, which gets the default if it is not there."),
    PLUS_METHOD_KW("update", compact_update, METH_VARARGS | METH_KEYWORDS,
                   "$self, other=(), /, **kwargs", "Set what a mapping or pairs have."),
    PLUS_METHOD("values", compact_values, METH_NOARGS, "$self, /", "Return a view of the values."),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "CompactDict(mapping_or_pairs=(), /, **kwargs)\n--\n\n"
         "A mutable mapping with the methods of dict, in the memory of its entries.\n\n"
         "    sessions = memory.CompactDict(sessions)\n\n"
         "The arguments are those of dict().  Up to 14 strings or numbers as keys take 16 bytes "
         "each and\n"
         "40 for all; more take 20.5 each, others 28.5, where a dict takes 22 to 100.  It grows by "
         "a\n"
         "sixteenth at most, and shrinks when three quarters of the entries are gone.\n\n"
         "It keeps the order of insertion, compares equal to a dict with the same items, and "
         "raises what\n"
         "a dict raises.  It is no class derived from dict, and none of another thread's business "
         "while\n"
         "that has the GIL.  Raises UnsupportedPlatform on a free-threaded build.")},
    {Py_tp_new, compact_new},
    {Py_tp_init, compact_init},
    {Py_tp_dealloc, compact_dealloc},
    {Py_tp_traverse, compact_traverse},
    {Py_tp_clear, compact_clear},
    {Py_tp_repr, plus_compact_repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_iter, compact_iter},
    {Py_tp_richcompare, plus_compact_richcompare},
    {Py_tp_methods, methods},
    {Py_mp_length, length},
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, ass_subscript},
    {Py_sq_contains, contains},
    {Py_nb_or, plus_compact_merge},
    {Py_nb_inplace_or, plus_compact_inplace_merge},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "cpythonplus.memory.CompactDict",
    .basicsize = sizeof(plus_compact_dict),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_MAPPING |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int
plus_compact_exec(PyObject *module)
{
    struct plus_compact_state *state = plus_compact_state(module);

    state->compact_dict = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (state->compact_dict == NULL) {
        return -1;
    }
    /* tp_vectorcall is not inherited: so it also distinguishes the type itself from derived classes. */
    state->compact_dict->tp_vectorcall = compact_vectorcall;
    if (PyModule_AddObjectRef(module, "CompactDict", (PyObject *)state->compact_dict) < 0) {
        return -1;
    }
    return plus_compact_views_exec(module, state);
}
