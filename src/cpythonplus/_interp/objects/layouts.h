/* Where CPython keeps the keys of a dict and the attributes of an instance: what its public headers do not tell.
 * The same from 3.11 to 3.15 but for what is said in the .c.
 *
 * All with the GIL held; nothing is made or changed.  plus_dict_parts() and plus_table_of() are for whom
 * PLUS_FACT_DICT_KEYS holds, what is about instances for whom PLUS_FACT_INLINE_VALUES does. */
#ifndef PLUS_INTERP_LAYOUTS_H
#define PLUS_INTERP_LAYOUTS_H

#include "../facts/facts.h"

/* Bytes that a dict has outside of itself: its table of keys, 0 if it is shared with others or the empty one, and
 * its values, 0 if they lie in the table or in the instance. */
void
plus_dict_parts(PyObject *dict, Py_ssize_t *keys_bytes, Py_ssize_t *values_bytes);

/* Whether instances of the class may have attributes without a dict. */
bool
plus_has_inline_values(PyTypeObject *type);

/* Bytes of the attributes of an instance that has no dict (or, from 3.13 on, has room for them anyway).
 * Up to 3.12 they are a block of their own and, of the first 30 instances of a class, up to 56 bytes more. */
Py_ssize_t
plus_inline_bytes(PyObject *op);

/* The attribute at `index`, from 0 on, of an instance without a dict: 1 and its name and value, borrowed, the
 * value NULL if it is not set; 0 behind the last one. */
int
plus_inline_attribute(PyObject *op, Py_ssize_t index, PyObject **name, PyObject **value);

/* The dict of an object's attributes if there is one, borrowed; not of a class or module.  None is made. */
PyObject *
plus_instance_dict(PyObject *op);

/* The dict of a class, borrowed: the class holds it.  NULL: there is none. */
PyObject *
plus_class_dict(PyTypeObject *type);

/* The value that a dict has for a name, borrowed, or NULL.  It is compared with no key of a class of the program's own, so that no
 * Python code runs; each key is looked at. */
PyObject *
plus_dict_item(PyObject *dict, const char *name);

/* The attribute of a class or of its bases, borrowed, or NULL; found in the same way. */
PyObject *
plus_class_attribute(PyTypeObject *type, const char *name);

/* Whether a class and its bases are known to have no other keys than strings: then _PyType_Lookup() runs no Python code
 * either. */
bool
plus_class_has_plain_names(PyTypeObject *type);

/* ---- how well that is used ------------------------------------------------------------------------- */

/* The interpreter shares the names of so many attributes among the instances of a class. */
#define PLUS_SHARED_NAMES 30

enum plus_storage {
    PLUS_STORAGE_NONE,     /* no attributes and no dict */
    PLUS_STORAGE_INLINE,   /* values only, the names are the class's; the instance has no dict */
    PLUS_STORAGE_SPLIT,    /* a dict whose names are the class's */
    PLUS_STORAGE_COMBINED, /* a dict with a key table of its own */
};

struct plus_attributes {
    enum plus_storage storage;
    PyObject *dict;   /* borrowed; NULL: none has been made */
    Py_ssize_t count; /* attributes that are set */
    Py_ssize_t
        size_bytes; /* of values, dict and key table, as far as they are this instance's own */
};

struct plus_table {
    Py_ssize_t entries;
    Py_ssize_t capacity;       /* entries that fit without another table */
    Py_ssize_t size_bytes;     /* of the object and its table */
    Py_ssize_t could_be_bytes; /* of a new dict or set with the same entries */
    bool general;              /* a dict that has, or had, keys that are no strings */
};

/* Whether the instances of a class can share their names; only then may the three functions below be asked. */
bool
plus_type_shares_keys(PyTypeObject *type);

void
plus_attributes_of(PyObject *op, struct plus_attributes *attributes);

/* What `count` attributes (at most PLUS_SHARED_NAMES) take in an instance that shares its names, in the cheapest way
 * that its class allows, with room for one more as the interpreter leaves it. */
Py_ssize_t
plus_attributes_shared_bytes(PyTypeObject *type, Py_ssize_t count);

/* How many names the class shares, and how many more it would. */
void
plus_type_shared_names(PyTypeObject *type, Py_ssize_t *names, Py_ssize_t *room);

/* Whether all keys of a combined dict are among the names that the class shares; false for other keys than
 * strings. */
bool
plus_dict_has_shared_names(PyObject *dict, PyTypeObject *type);

/* Of a dict or set; false where there is no table of its own. */
bool
plus_table_of(PyObject *op, struct plus_table *table);

#endif
