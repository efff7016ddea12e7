/* The types behind memory.Record, whose Python half is _record/.
 *
 *     RecordType        metaclass: a class with the fields of plus_record_class
 *     RecordBase        base of Record: the life and the methods of instances
 *     FrozenRecordBase  in front of it for frozen classes
 *     RecordCloser      keeps a class without instances while it is made
 *
 * A class is made by type.__new__, with the fields as its slots, and gets a collector's header, since instances
 * with slots may be in cycles.  Then memory_seal_record() removes the header, before there is an instance.  So
 * member descriptors, layout, inheritance and attribute access are the interpreter's own.
 *
 * type.__new__ calls the program: __set_name__ of the objects in the class's body, then __init_subclass__.  An instance
 * made there would be allocated with a header, and freed without.  So a closer is the first entry of the body, and its
 * __set_name__ is called before all others: from then on the class allocates no instance, and its tp_free differs from
 * that of every class with instances, so that no object can get the class by an assignment to __class__.
 *
 * Rejected: closing the class in a mro() of the metaclass, which comes earlier.  The interpreter does not cache the
 * attributes of classes that have such a method.  A tp_new of the metaclass: type.__new__, which the __new__ of
 * another metaclass beside it calls (ABCMeta), refuses a metaclass with a tp_new of its own.
 *
 * Rejected: a type from a PyType_Spec for the fields, without a header from the beginning, and the user's class derived
 * from it.  It would be a second class for each, in every MRO, and from 3.12 on the functions that make such types
 * refuse a base whose metaclass has a __new__. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../_interp/objects/referents.h"
#include "../state.h"
#include "record.h"

#define KEYWORDS(f) ((PyCFunction)(void (*)(void))(f))

/* ---- the metaclass -------------------------------------------------------------------------------- */

static int
class_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct plus_record_class *class = (struct plus_record_class *)op;

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(class->names);
    Py_VISIT(class->defaults);
    Py_VISIT(class->post_init);
    return PyType_Type.tp_traverse(op, visit, arg);
}

/* The defaults stay, as a tuple's items do: a finaliser in a cycle with the class may still make instances. */
static int
class_clear(PyObject *op)
{
    return PyType_Type.tp_clear(op);
}

static void
class_dealloc(PyObject *op)
{
    struct plus_record_class *class = (struct plus_record_class *)op;
    PyTypeObject *meta = Py_TYPE(op);

    PyObject_GC_UnTrack(op); /* releasing the fields may start the collector */
    Py_CLEAR(class->names);
    Py_CLEAR(class->defaults);
    Py_CLEAR(class->post_init);
    PyMem_Free(class->offsets);
    PyObject_GC_Track(op); /* the tp_dealloc of `type` expects a tracked object */
    PyType_Type.tp_dealloc(op);
    Py_DECREF(meta);
}

PyDoc_STRVAR(class_doc, "What classes of records are instances of.");

static PyType_Slot class_slots[] = {
    {Py_tp_traverse, class_traverse},
    {Py_tp_clear, class_clear},
    {Py_tp_dealloc, class_dealloc},
    {Py_tp_doc, (void *)class_doc},
    {0, NULL},
};

static PyType_Spec class_spec = {
    .name = "cpythonplus._native.RecordType",
    .basicsize = sizeof(struct plus_record_class),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = class_slots,
};

/* ---- classes without instances --------------------------------------------------------------------- */

static PyObject *
refuse_alloc(PyTypeObject *type, Py_ssize_t items)
{
    return plus_record_raise_unsealed(type);
}

static void
refuse_free(void *op)
{
    Py_FatalError("a class of records that was not complete had an instance");
}

static void
close_class(PyTypeObject *type)
{
    type->tp_alloc = refuse_alloc;
    type->tp_free = refuse_free;
}

static bool
is_closed(PyTypeObject *type)
{
    return type->tp_alloc == refuse_alloc;
}

/* Remove the name again: type.__new__ iterates over a copy of the dict, and the program does not see the name. */
static PyObject *
closer_set_name(PyObject *self, PyObject *args)
{
    PyTypeObject *type;
    PyObject *name;
    const struct plus_compact_state *state = plus_compact_state_of_type(Py_TYPE(self));

    if (state == NULL ||
        !PyArg_ParseTuple(args, "O!U:__set_name__", state->record_type, &type, &name)) {
        return NULL;
    }
    if (plus_record_is_sealed(type)) {
        PyErr_SetString(PyExc_ValueError, "this class of records is complete");
        return NULL;
    }
    close_class(type);
    return PyType_Type.tp_setattro((PyObject *)type, name, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

PyDoc_STRVAR(closer_doc, "The first name in the body of a class of records.");

static PyMethodDef closer_methods[] = {
    PLUS_METHOD("__set_name__", closer_set_name, METH_VARARGS, "$self, owner, name, /",
                "Keep the class without instances until it is sealed."),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot closer_slots[] = {
    {Py_tp_methods, closer_methods},
    {Py_tp_doc, (void *)closer_doc},
    {0, NULL},
};

static PyType_Spec closer_spec = {
    .name = "cpythonplus._native.RecordCloser",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = closer_slots,
};

/* ---- the bases ------------------------------------------------------------------------------------ */

PyObject *
plus_record_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!plus_record_is_sealed(type)) {
        return plus_record_raise_unsealed(type);
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) {
        PyObject *nothing = PyTuple_New(0);
        PyObject *op = nothing == NULL ? NULL : PyBaseObject_Type.tp_new(type, nothing, NULL);
        Py_XDECREF(nothing);
        return op; /* always NULL: it raises */
    }
    return plus_record_new((struct plus_record_class *)type);
}

static void
swap(PyObject **one, PyObject **other, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

/* With a wrong argument no field is changed.  The old values are released last: their finalisers may read the
 * record. */
int
plus_record_tp_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    if (!plus_record_is_sealed(Py_TYPE(op))) { /* only type.__new__ made its class */
        plus_record_raise_unsealed(Py_TYPE(op));
        return -1;
    }
    PyObject **fields = plus_record_fields(op);
    Py_ssize_t count = plus_record_class_of(op)->count;

    if (plus_record_may_be_set(op) < 0) {
        return -1;
    }
    PyObject **left = PyMem_Calloc((size_t)count + 1, sizeof *left);
    if (left == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    swap(fields, left, count);
    int status = plus_record_bind_dict(op, args, kwargs);
    if (status < 0) {
        swap(fields, left, count);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(left[i]);
    }
    PyMem_Free(left);
    return status < 0 ? -1 : plus_record_post_init(op);
}

PyDoc_STRVAR(from_row_doc,
             "from_row($type, row, /, *, ignore_extra=False)\n--\n\n"
             "Make a record from one row, as from_rows() does it.\n\n"
             "For json.loads(text, object_hook=Row.from_row), where each object is such a row.");
PyDoc_STRVAR(
    from_rows_doc,
    "from_rows($type, rows, /, *, ignore_extra=False)\n--\n\n"
    "Make a list of records from an iterable of rows: a cursor, csv.reader, decoded JSON.\n\n"
    "rows: mappings, or whatever has keys(), are read by name, and what is missing gets its\n"
    "default; sequences are read by place and must have a value for each field.\n"
    "ignore_extra: whether mappings may have keys that are no fields.\n\n"
    "One row is read at a time.  Raises TypeError with the row's number, counted from 0, and\n"
    "the field that is missing, the key that is no field or the number of values.");
PyDoc_STRVAR(replace_doc, "__replace__($self, /, **changes)\n--\n\n"
                          "Return a new record with other values for some fields.\n\n"
                          "It is made by the class: __post_init__ is called.");
PyDoc_STRVAR(base_doc, "What Record is made of.");
PyDoc_STRVAR(frozen_doc, "What makes records frozen.");

static PyMethodDef base_methods[] = {
    {"from_row", KEYWORDS(plus_record_from_row), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     from_row_doc},
    {"from_rows", KEYWORDS(plus_record_from_rows), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     from_rows_doc},
    PLUS_METHOD("asdict", plus_record_asdict, METH_NOARGS, "$self, /",
                "Return a dict of the fields that are set.\n\n"
                "Their values are taken as they are: records in records stay records."),
    {"__replace__", KEYWORDS(plus_record_replace), METH_VARARGS | METH_KEYWORDS, replace_doc},
    PLUS_METHOD("__reduce__", plus_record_reduce, METH_NOARGS, "$self, /", "For copy and pickle."),
    PLUS_METHOD("__setstate__", plus_record_setstate, METH_O, "$self, values, /",
                "For copy and pickle."),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot base_slots[] = {
    {Py_tp_alloc, refuse_alloc},
    {Py_tp_free, refuse_free},
    {Py_tp_new, plus_record_tp_new},
    {Py_tp_init, plus_record_tp_init},
    {Py_tp_dealloc, plus_record_dealloc},
    {Py_tp_repr, plus_record_repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_richcompare, plus_record_compare},
    {Py_tp_methods, base_methods},
    {Py_tp_doc, (void *)base_doc},
    {0, NULL},
};

static PyType_Spec base_spec = {
    .name = "cpythonplus._native.RecordBase",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = base_slots,
};

/* Not by tp_setattro: it would also refuse object.__setattr__(), by which a __post_init__ sets computed fields. */
static PyMethodDef frozen_methods[] = {
    PLUS_METHOD("__setattr__", plus_record_frozen_setattr, METH_VARARGS, "$self, name, value, /",
                "Raise AttributeError."),
    PLUS_METHOD("__delattr__", plus_record_frozen_delattr, METH_O, "$self, name, /",
                "Raise AttributeError."),
    {NULL, NULL, 0, NULL},
};

/* A type that sets tp_richcompare does not inherit tp_hash. */
static PyType_Slot frozen_slots[] = {
    {Py_tp_methods, frozen_methods},
    {Py_tp_richcompare, plus_record_compare},
    {Py_tp_hash, plus_record_hash},
    {Py_tp_doc, (void *)frozen_doc},
    {0, NULL},
};

static PyType_Spec frozen_spec = {
    .name = "cpythonplus._native.FrozenRecordBase",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = frozen_slots,
};

/* ---- sealing a class ------------------------------------------------------------------------------ */

/* True if an instance has only the fields. */
static bool
has_only_fields(PyTypeObject *type, Py_ssize_t count)
{
    Py_ssize_t bytes = PyBaseObject_Type.tp_basicsize + count * (Py_ssize_t)sizeof(PyObject *);

    return type->tp_basicsize == bytes && type->tp_itemsize == 0 && type->tp_dictoffset == 0 &&
           type->tp_weaklistoffset == 0
#ifdef Py_TPFLAGS_MANAGED_DICT
           && !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)
#endif
#ifdef Py_TPFLAGS_MANAGED_WEAKREF
           && !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_WEAKREF)
#endif
        ;
}

/* The offset in the slot's descriptor of the class or one of its bases; 0 if there is none. */
static Py_ssize_t
offset_of(PyTypeObject *type, PyObject *name)
{
    const char *wanted = PyUnicode_AsUTF8(name);

    for (; wanted != NULL && type != NULL; type = type->tp_base) {
        for (const PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL;
             member++) {
            if (strcmp(member->name, wanted) == 0 && member->type == Py_T_OBJECT_EX) {
                return member->offset;
            }
        }
    }
    return 0;
}

static Py_ssize_t *
offsets_of(PyTypeObject *type, PyObject *names)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    Py_ssize_t *offsets = PyMem_Calloc((size_t)count + 1, sizeof *offsets);

    if (offsets == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        offsets[i] = offset_of(type, PyTuple_GET_ITEM(names, i));
        if (offsets[i] == 0) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_TypeError, "%s has no field %R", type->tp_name,
                             PyTuple_GET_ITEM(names, i));
            }
            PyMem_Free(offsets);
            return NULL;
        }
    }
    return offsets;
}

/* Make calls without a tuple and a dict possible. */
static void
offer_vectorcall(PyTypeObject *type)
{
    PyTypeObject *meta = Py_TYPE(type);

    if (!plus_record_is_plain(type) || meta->tp_call != PyType_Type.tp_call) {
        return;
    }
    type->tp_vectorcall = plus_record_vectorcall;
#if PY_VERSION_HEX < 0x030C0000 /* later versions inherit the flag */
    meta->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
#endif
}

static int
seal(struct plus_record_class *class, PyObject *names, PyObject *defaults, PyObject *post_init)
{
    PyTypeObject *type = (PyTypeObject *)class;
    Py_ssize_t count = PyTuple_GET_SIZE(names);

    if (!has_only_fields(type, count)) {
        PyErr_Format(PyExc_TypeError,
                     "a base of %s has something else than fields in its instances", type->tp_name);
        return -1;
    }
    class->offsets = offsets_of(type, names);
    if (class->offsets == NULL) {
        return -1;
    }
    class->count = count;
    class->names = Py_NewRef(names);
    class->defaults = Py_NewRef(defaults);
    class->post_init = post_init != Py_None ? Py_NewRef(post_init) : NULL;
    type->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
    type->tp_alloc = PyType_GenericAlloc;
    type->tp_free = PyObject_Free;
    type->tp_dealloc = plus_record_dealloc;
    type->tp_traverse = plus_record_traverse;
    type->tp_clear = NULL;
    offer_vectorcall(type);
    return 0;
}

static PyObject *
memory_seal_record(PyObject *module, PyObject *args)
{
    PyObject *type, *names, *defaults, *post_init;
    const struct plus_compact_state *state = plus_compact_state(module);

    if (plus_refuses_free_threaded() ||
        !PyArg_ParseTuple(args, "O!O!O!O:memory_seal_record", state->record_type, &type,
                          &PyTuple_Type, &names, &PyTuple_Type, &defaults, &post_init)) {
        return NULL;
    }
    if (plus_record_is_sealed((PyTypeObject *)type) || !is_closed((PyTypeObject *)type) ||
        !PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)state->record_base) ||
        PyTuple_GET_SIZE(defaults) > PyTuple_GET_SIZE(names)) {
        PyErr_SetString(PyExc_ValueError, "memory_seal_record takes a new class of records");
        return NULL;
    }
    struct plus_record_class *class = (struct plus_record_class *)type;
    class->frozen =
        PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)state->frozen_record_base);
    if (seal(class, names, defaults, post_init) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyMethodDef plus_memory_record_methods[] = {
    PLUS_METHOD(
        "memory_seal_record", memory_seal_record, METH_VARARGS,
        "$module, type, names, defaults, post_init, /",
        "The last step of making a class of records: from now on it has instances.\n\n"
        "names: of its fields, which are its slots and those of its bases.  defaults: of the\n"
        "last ones.  post_init: the name of the method to call, or None."),
    {NULL, NULL, 0, NULL},
};

static int
add_type(PyObject *module, PyObject **made, PyType_Spec *spec, PyObject *base)
{
    *made = PyType_FromModuleAndSpec(module, spec, base);
    return *made == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)*made);
}

int
plus_record_exec(PyObject *module)
{
    struct plus_compact_state *state = plus_compact_state(module);

    if (add_type(module, &state->record_type, &class_spec, (PyObject *)&PyType_Type) < 0 ||
        add_type(module, &state->record_base, &base_spec, NULL) < 0 ||
        add_type(module, &state->frozen_record_base, &frozen_spec, state->record_base) < 0 ||
        add_type(module, &state->record_closer, &closer_spec, NULL) < 0) {
        return -1;
    }
    state->record_maker = plus_import_from("copyreg", "__newobj__");
    plus_referents_headless(plus_record_traverse);
    return state->record_maker == NULL ? -1
                                       : PyModule_AddFunctions(module, plus_memory_record_methods);
}
