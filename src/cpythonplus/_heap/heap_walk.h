/* A walk over every object of the interpreter, once each: the objects in the collector's lists (frozen objects, too),
 * the untracked objects that these refer to (strings, numbers, untracked tuples, code), the variables of executing
 * functions, and the classes of all of these.  References of numpy's arrays are read from their fields.  An object is
 * missed if only C code refers to it, from places that are not visible.
 *
 * The GIL must be held, and stays so: the program stands still meanwhile.  Makes no object, changes no object and runs
 * no Python code; takes about 1 % of the heap for itself, from malloc.
 *
 * If PLUS_FACT_GC_RINGS does not hold, the objects are those of gc.get_objects() and the objects reachable from them:
 * this takes longer and about 10 bytes for each, and frozen objects are told only if others lead to them.  Then a walk
 * does make an object, and audit hooks run, before it begins: see gc_objects.h. */
#pragma once

#include "../_base/compat.h"

#include <stddef.h>

enum plus_heap_origin {
    PLUS_HEAP_LISTED,   /* an object in the collector's lists */
    PLUS_HEAP_FROZEN,   /* an object that gc.freeze() has moved out of those lists */
    PLUS_HEAP_REFERRED, /* an untracked object that another one refers to */
    PLUS_HEAP_IN_FRAME, /* an object that was met only as a variable of an executing function */
    PLUS_HEAP_AS_TYPE,  /* a static class, met as the type of an object */
};

/* The callbacks of the walk; each returns 0 to go on, and any other result ends the walk. */
struct plus_heap_visitor {
    /* Called for an object.  `parent` is the object that it was met through, NULL unless `origin` is
     * PLUS_HEAP_REFERRED.  May be NULL. */
    int (*object)(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg);
    /* Called for a reference, sometimes twice, after `object` of `from`, before or after that of `to`.  May be NULL. */
    int (*reference)(PyObject *from, PyObject *to, void *arg);
    void *arg;
};

/* NULL, or the reason why plus_heap_walk must not be called.  May make objects the first time. */
const char *
plus_heap_walk_refusal(void);

/* True if an UnsupportedPlatform is to be raised for that reason. */
bool
plus_heap_walk_raises(void);

/* 0; -ENOMEM if memory was short; or the result of a callback. extra_bytes (may be NULL): the most bytes that the walk
 * took for itself. */
int
plus_heap_walk(const struct plus_heap_visitor *visitor, size_t *extra_bytes);

/* True if a walk would report a reference from `from` to `to`.  `to` is only compared. */
bool
plus_heap_refers(PyObject *from, const PyObject *to);
