/* What objects take, so fast that it can be asked of millions: as plus_object_bytes() says it, and also what lies
 * inside or beside instances and __sizeof__ leaves out.
 *
 * How to measure is found out once for each class, then only fields are read.  All with the GIL held. */
#ifndef PLUS_INTERP_OBJECT_PARTS_H
#define PLUS_INTERP_OBJECT_PARTS_H

#include "../../_base/compat.h"

enum plus_measure {
    PLUS_FIXED,
    PLUS_ITEMS, /* in the object, as many as its size says */
    PLUS_INT,
    PLUS_STR,
    PLUS_LIST,
    PLUS_DICT,
    PLUS_SET,
    PLUS_TOLD, /* by __sizeof__ of a type that the interpreter has, or numpy: makes a number */
};

/* How instances of one class are measured. */
struct plus_measuring {
    enum plus_measure measure;
    bool inline_values;
    Py_ssize_t fixed_bytes; /* the basic size and what lies in front of the object */
    Py_ssize_t item_bytes, extra_items;
};

/* The blocks of memory that an object consists of; 0: there is none. */
struct plus_parts {
    Py_ssize_t object, table, values;
};

/* Where a fact does not hold, the type's __sizeof__ is asked instead. */
struct plus_measuring
plus_measuring_of(PyTypeObject *type);

/* `how` is that of the object's class.  Blocks that several objects share count for none of them but the class. */
struct plus_parts
plus_parts_of(const struct plus_measuring *how, PyObject *op);

#endif
