/* The cost of a program's text as objects: code, docstrings, annotations, interned names; and the free lists. */
#pragma once

#include "../../_base/compat.h"

struct plus_fixed_cost {
    Py_ssize_t objects, size_bytes;
};

struct plus_fixed_costs {
    struct plus_fixed_cost code;        /* with line tables, constants, names; without docstrings */
    struct plus_fixed_cost docstrings;  /* of functions, classes and modules */
    struct plus_fixed_cost annotations; /* of functions and classes, without referents */
    struct plus_fixed_cost interned;    /* one string for each text; some are also counted above */
    struct plus_fixed_cost immortal;    /* interned strings that stay until the process ends */
};

/* Walks over the heap, if plus_heap_walk_refusal() allows it; 0, or -ENOMEM. */
int
plus_fixed_costs_count(struct plus_fixed_costs *costs);

/* ---- free lists: freed objects that the interpreter keeps for reuse ---- */
/* Returns the text that sys._debugmallocstats() writes about the allocator and the free lists, as a str.
 *
 * It writes to the C library's `stderr`, which is replaced for the call; output of other threads still reaches the
 * original stream.  None if the interpreter has no such function, or the C library (musl) no such variable, or if the
 * program has replaced the function.  NULL with MemoryError.  With the GIL held, not on a free-threaded build; the
 * time is in proportion to the arenas. */
PyObject *
plus_free_lists_text(void);
