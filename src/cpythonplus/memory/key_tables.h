/* Where instances keep their attributes, and how full the tables of dicts and sets are.  Only reads; the GIL must be
 * held, and what is returned holds while it is.  Makes nothing, runs no Python code. */
#ifndef PLUS_MEMORY_KEY_TABLES_H
#define PLUS_MEMORY_KEY_TABLES_H

#include "../_base/compat.h"

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

/* Whether the instances of a class can share their names; only then may the functions below be asked. */
bool
plus_type_shares_keys(PyTypeObject *type);

/* Whether they need no dict to hold attributes. */
bool
plus_type_inlines_values(PyTypeObject *type);

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
