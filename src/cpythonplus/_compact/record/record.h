/* Objects with a fixed set of fields and nothing else: memory.Record.
 *
 *     an instance of n fields:   ob_refcnt | ob_type | field 0 | ... | field n - 1        16 + 8 n bytes
 *
 * No collector's header is in front of it, so the collector sees neither the record nor its references.  The fields are
 * the slots of its class, in the interpreter's order: by name, those of a base first.  The class has their offsets, in
 * the order of declaration.
 *
 * All with the GIL held. */
#pragma once

#include "../../_base/compat.h"

/* A class of records: an instance of the metaclass.  All fields behind `heap` are 0 until the class is sealed, which is
 * the last step of its making; there is no instance before that.  They do not change afterwards. */
struct plus_record_class {
    PyHeapTypeObject heap;
    PyObject *names;     /* tuple of interned str, in the order of declaration; NULL: not sealed */
    PyObject *defaults;  /* tuple, of the last fields */
    PyObject *post_init; /* "__post_init__" if the class has it, else NULL */
    Py_ssize_t *offsets; /* by index in `names`, from the object's address */
    Py_ssize_t count;
    bool frozen;
};

/* True if the class may have instances: Record itself has none, nor has an unfinished class, or one made by
 * type.__new__ alone. */
static inline bool
plus_record_is_sealed(PyTypeObject *type)
{
    return Py_TYPE(type)->tp_basicsize >= (Py_ssize_t)sizeof(struct plus_record_class) &&
           ((struct plus_record_class *)type)->names != NULL;
}

static inline struct plus_record_class *
plus_record_class_of(PyObject *op)
{
    return (struct plus_record_class *)Py_TYPE(op);
}

static inline PyObject **
plus_record_field(const struct plus_record_class *class, PyObject *op, Py_ssize_t i)
{
    return (PyObject **)((char *)op + class->offsets[i]);
}

static inline PyObject *
plus_record_name(const struct plus_record_class *class, Py_ssize_t i)
{
    return PyTuple_GET_ITEM(class->names, i);
}

/* The fields in the order of memory, for code that does not care which is which. */
static inline PyObject **
plus_record_fields(PyObject *op)
{
    return (PyObject **)((char *)op + PyBaseObject_Type.tp_basicsize);
}

static inline PyObject **
plus_record_end(PyObject *op)
{
    return (PyObject **)((char *)op + Py_TYPE(op)->tp_basicsize);
}

/* ---- record.c: life cycle ------------------------------------------------------------------------- */

/* A new record without any field set; NULL with an exception.  The class must be sealed. */
PyObject *
plus_record_new(struct plus_record_class *class);

/* Raise TypeError for a class that is not sealed.  Returns NULL. */
void *
plus_record_raise_unsealed(PyTypeObject *type);

/* tp_dealloc.  Uses a bounded part of the C stack for any chain of records. */
void
plus_record_dealloc(PyObject *op);

/* tp_traverse, for this package's own walks, which know it by its address; the collector does not call it. */
int
plus_record_traverse(PyObject *op, visitproc visit, void *arg);

/* ---- record_call.c: fields from arguments ---------------------------------------------------------- */

/* The default of a field, borrowed; NULL if it has none. */
static inline PyObject *
plus_record_default(const struct plus_record_class *class, Py_ssize_t i)
{
    Py_ssize_t required = class->count - PyTuple_GET_SIZE(class->defaults);

    return i < required ? NULL : PyTuple_GET_ITEM(class->defaults, i - required);
}

/* Set the fields of a new record from arguments, as a function sets its parameters, with its errors.  0, or -1. */
int
plus_record_bind(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* Like plus_record_bind(), with the arguments as a tuple and a dict, which may be NULL. */
int
plus_record_bind_dict(PyObject *op, PyObject *args, PyObject *kwargs);

/* Call __post_init__ if the class has one.  0, or -1. */
int
plus_record_post_init(PyObject *op);

/* tp_vectorcall of classes that make their instances as Record does; removes itself from a class that no longer
 * does. */
PyObject *
plus_record_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* tp_new and tp_init (record_py.c). */
PyObject *
plus_record_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
int
plus_record_tp_init(PyObject *op, PyObject *args, PyObject *kwargs);

/* True if calling the class only binds arguments. */
static inline bool
plus_record_is_plain(PyTypeObject *type)
{
    return type->tp_new == plus_record_tp_new && type->tp_init == plus_record_tp_init &&
           !PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT);
}

/* ---- record_methods.c: slots and methods ---------------------------------------------------- */

PyObject *
plus_record_compare(PyObject *left, PyObject *right, int how);
PyObject *
plus_record_repr(PyObject *op);
PyObject *
plus_record_asdict(PyObject *op, PyObject *unused);
PyObject *
plus_record_replace(PyObject *op, PyObject *args, PyObject *changes);
PyObject *
plus_record_reduce(PyObject *op, PyObject *unused);
PyObject *
plus_record_setstate(PyObject *op, PyObject *values);

/* Methods of frozen records. */
Py_hash_t
plus_record_hash(PyObject *op);
PyObject *
plus_record_frozen_setattr(PyObject *op, PyObject *args);
PyObject *
plus_record_frozen_delattr(PyObject *op, PyObject *name);

/* 0 if fields of the record may be set; -1 with AttributeError if the record is frozen and any of its fields is set. */
int
plus_record_may_be_set(PyObject *op);

/* ---- record_rows.c: records from rows -------------------------------------------------------------- */

/* from_row(row, *, ignore_extra=False), from_rows(rows, *, ignore_extra=False): class methods. */
PyObject *
plus_record_from_row(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *
plus_record_from_rows(PyObject *type, PyObject *args, PyObject *kwargs);
