/* The memory layout of a dict's keys and an instance's attributes, which the public headers do not tell.  The same from
 * 3.11 to 3.15 except for the differences in the .c.
 *
 * GIL held; no object is made or changed. plus_dict_parts() and plus_table_of() require PLUS_FACT_DICT_KEYS, the
 * functions for instances PLUS_FACT_INLINE_VALUES. */
#pragma once

#include "../facts/facts.h"

/* The bytes of a dict outside of its object: its key table, 0 if that is shared or the empty one, and its values, 0 if
 * they are in the table or in the instance. */
void
plus_dict_parts(PyObject *dict, Py_ssize_t *keys_bytes, Py_ssize_t *values_bytes);

/* True if instances of the class may have attributes without a dict. */
bool
plus_has_inline_values(PyTypeObject *type);

/* The bytes of the attributes of an instance without a dict (from 3.13 on also with one, as the room for them stays).
 * Up to 3.12 they are a block of their own; for the first 30 instances of a class the result may be up to 56 bytes too
 * large. */
Py_ssize_t
plus_inline_bytes(PyObject *op);

/* The attribute at `index`, from 0 on, of an instance without a dict: returns 1, name and value are borrowed, the value
 * is NULL if unset.  Returns 0 behind the last one. */
int
plus_inline_attribute(PyObject *op, Py_ssize_t index, PyObject **name, PyObject **value);

/* The dict of an object's attributes if there is one, borrowed; not of a class or module.  None is made. */
PyObject *
plus_instance_dict(PyObject *op);

/* The dict of a class, borrowed: the class holds it.  NULL if there is none. */
PyObject *
plus_class_dict(PyTypeObject *type);

/* The value of a dict for a name, borrowed, or NULL.  Keys with a class of the program's own are not compared, so that
 * no Python code runs; the search visits each key. */
PyObject *
plus_dict_item(PyObject *dict, const char *name);

/* The attribute of a class or of its bases, borrowed, or NULL.  Like plus_dict_item() it runs no Python code. */
PyObject *
plus_class_attribute(PyTypeObject *type, const char *name);

/* True if a class and its bases are known to have only strings as keys: then _PyType_Lookup() runs no Python code
 * either. */
bool
plus_class_has_plain_names(PyTypeObject *type);

/* ---- memory use of dicts and sets ------------------------------------------------------------------ */

/* The interpreter shares at most this number of names among the instances of a class. */
#define PLUS_SHARED_NAMES 30

enum plus_storage {
    PLUS_STORAGE_NONE,     /* no attributes and no dict */
    PLUS_STORAGE_INLINE,   /* values only; the class has the names, and the instance has no dict */
    PLUS_STORAGE_SPLIT,    /* a dict with values; the class has the names */
    PLUS_STORAGE_COMBINED, /* a dict with a key table of its own */
};

struct plus_attributes {
    enum plus_storage storage;
    PyObject *dict;        /* borrowed; NULL if none has been made */
    Py_ssize_t count;      /* attributes that are set */
    Py_ssize_t size_bytes; /* of values, dict and key table, without shared ones */
};

struct plus_table {
    Py_ssize_t entries;
    Py_ssize_t capacity;       /* entries that fit without a new table */
    Py_ssize_t size_bytes;     /* of the object and its table */
    Py_ssize_t could_be_bytes; /* of a new dict or set with the same entries */
    bool general;              /* a dict that has, or had, keys that are not strings */
};

/* True if the instances of a class can share their names; required for the three functions below. */
bool
plus_type_shares_keys(PyTypeObject *type);

void
plus_attributes_of(PyObject *op, struct plus_attributes *attributes);

/* The bytes of `count` attributes (at most PLUS_SHARED_NAMES) in an instance that shares its names, stored in the
 * cheapest way that its class allows, with room for one more as the interpreter leaves it. */
Py_ssize_t
plus_attributes_shared_bytes(PyTypeObject *type, Py_ssize_t count);

/* The number of names that the class shares, and the number that it could still add. */
void
plus_type_shared_names(PyTypeObject *type, Py_ssize_t *names, Py_ssize_t *room);

/* True if all keys of a combined dict are among the names that the class shares; false for keys that are not
 * strings. */
bool
plus_dict_has_shared_names(PyObject *dict, PyTypeObject *type);

/* Describe the table of a dict or set; false if it has no table of its own. */
bool
plus_table_of(PyObject *op, struct plus_table *table);
