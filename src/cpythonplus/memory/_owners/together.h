/* Sums of objects that are too small for a row each, by what they have in common. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/record_table.h"
#include "../../_heap/reach.h"

enum plus_together_kind {
    PLUS_TOGETHER_FRAMES, /* frames of one function */
    PLUS_TOGETHER_UNREACHED, /* garbage: functions of one code object, objects of one class, classes of one base */
    PLUS_TOGETHER_HELD, /* objects that C code holds: by the code that they execute, or by class */
    PLUS_TOGETHER_LEFT, /* objects that no walk has met: by class */
    PLUS_TOGETHER_KINDS,
};

/* key: an address that no object has; a later look makes an equal key.
 * of: a code object, or a class.
 * in: how the object that C code holds refers to `of`, as "method" or "tuple"; "subclasses of"; "".
 * by: the call that gave all of them to the interpreter; "".
 * has_names: each is named by its thread. */
struct plus_together {
    const void *key;
    PyObject *of;
    const char *in, *by;
    bool has_names;
    uint64_t bytes, objects;
    uint32_t count;
};

/* Fills a table of struct plus_together. most_bytes: objects that C code holds are left out if they reach so many
 * bytes.  0, or -ENOMEM. */
int
plus_together_count(const struct plus_reach *owners, enum plus_together_kind kind,
                    uint64_t most_bytes, struct plus_record_table *table);

/* Returns the code object that an object, or its content, executes, borrowed; NULL: none. *in: how the object refers
 * to it. */
PyObject *
plus_together_code(PyObject *op, const char **in);

/* Returns the key of a node that is a root or a variable of a function; NULL for a module and for all other nodes. */
const void *
plus_together_key(const struct plus_reach *owners, uint32_t node);
