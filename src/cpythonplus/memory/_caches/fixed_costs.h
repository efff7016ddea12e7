/* What a program's text costs as objects: code, docstrings, annotations, interned names. */
#ifndef PLUS_MEMORY_FIXED_COSTS_H
#define PLUS_MEMORY_FIXED_COSTS_H

#include "../../_base/compat.h"

struct plus_fixed_cost {
    Py_ssize_t objects, size_bytes;
};

struct plus_fixed_costs {
    struct plus_fixed_cost
        code; /* with line tables, constants and tuples of names, but for docstrings */
    struct plus_fixed_cost docstrings; /* of functions, classes and modules */
    struct plus_fixed_cost
        annotations; /* of functions and classes; what they refer to is not counted */
    struct plus_fixed_cost
        interned; /* strings of which each text exists once; in part counted above */
    struct plus_fixed_cost immortal; /* those of them that stay until the process ends */
};

/* Walks over the heap (heap_walk.h says when it may); 0, or -ENOMEM. */
int
plus_fixed_costs_count(struct plus_fixed_costs *costs);

#endif
