/* The sizes of objects, fast enough for millions: those of plus_object_bytes(), and the parts inside or beside
 * instances that __sizeof__ leaves out.
 *
 * The way of measuring is determined once for each class, then only fields are read.  GIL held. */
#pragma once

#include "../../_base/compat.h"

enum plus_measure {
    PLUS_FIXED,
    PLUS_ITEMS, /* items in the object, as many as its size says */
    PLUS_INT,
    PLUS_STR,
    PLUS_LIST,
    PLUS_DICT,
    PLUS_SET,
    PLUS_TOLD, /* by the __sizeof__ of a type of the interpreter or numpy: makes an int */
};

/* The way in which instances of one class are measured. */
struct plus_measuring {
    enum plus_measure measure;
    bool inline_values;
    Py_ssize_t fixed_bytes; /* the basic size and the words in front of the object */
    Py_ssize_t item_bytes, extra_items;
};

/* The bytes of each block of an object; 0 if it has no such block. */
struct plus_parts {
    Py_ssize_t object, table, values;
};

/* If a fact does not hold, the type's __sizeof__ is called instead. */
struct plus_measuring
plus_measuring_of(PyTypeObject *type);

/* `how` is that of the object's class.  Blocks that several objects share count only for the class. */
struct plus_parts
plus_parts_of(const struct plus_measuring *how, PyObject *op);
