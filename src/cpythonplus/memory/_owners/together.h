/* What is too small to be told one by one, added up by what it has in common. */
#ifndef PLUS_MEMORY_TOGETHER_H
#define PLUS_MEMORY_TOGETHER_H

#include "../../_base/memory/record_table.h"
#include "../../_heap/reach.h"
#include "../../_interp/objects/arenas.h"

enum plus_together_kind {
    PLUS_TOGETHER_FRAMES,    /* frames of one function */
    PLUS_TOGETHER_UNREACHED, /* garbage: functions of one code, objects of one class */
    PLUS_TOGETHER_HELD,      /* what C code holds: by the code that it runs, or by class */
    PLUS_TOGETHER_LEFT,      /* objects in pymalloc's blocks that no walk has met: by class */
    PLUS_TOGETHER_KINDS,
};

struct plus_together {
    const void *key; /* an address that no object has; the same in a later look */
    PyObject *of;    /* a code object, or a class */
    const char *in;  /* "method", "tuple" ...: what C code holds refers to `of`; "" */
    const char *by;  /* the call that has given all of them to the interpreter; "" */
    bool has_names;  /* each has a name of its own: that of its thread */
    uint64_t bytes, objects;
    uint32_t count;
};

/* Fills a table of struct plus_together.  most_bytes: what C code holds is left out if it has so many.  0, or -ENOMEM. */
int
plus_together_count(const struct plus_reach *owners, enum plus_together_kind kind,
                    uint64_t most_bytes, struct plus_record_table *table);

/* The code that an object executes, or that what it has executes, borrowed, and how it refers to that; NULL: none. */
PyObject *
plus_together_code(PyObject *op, const char **in);

/* The key that a root which C code holds has, or a variable of a function; NULL: the node is none of these. */
const void *
plus_together_key(const struct plus_reach *owners, uint32_t node);

#endif
