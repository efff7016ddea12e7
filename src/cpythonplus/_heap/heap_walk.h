/* A walk over every object of the interpreter, once each: what the collector lists (frozen objects, too), what
 * that refers to and the collector does not know (strings, numbers, untracked tuples, code), what executing
 * functions hold, and the classes of all of these.  What numpy's arrays refer to is read from
 * them.  Not seen is what only other C code refers to, in places that it tells nobody of.
 *
 * The GIL must be held, and stays so: the program stands still meanwhile.  Makes no object, changes no object and
 * runs no Python code; what it needs for itself is about 1 % of the heap, from malloc.
 *
 * If PLUS_FACT_GC_RINGS does not hold, the objects are those of gc.get_objects() and what hangs on them: this takes longer
 * and some 10 bytes for each, and frozen objects are told only if others lead to them.  Then a walk does make an object,
 * and audit hooks run, before it begins: see gc_objects.h. */
#ifndef PLUS_MEMORY_HEAP_WALK_H
#define PLUS_MEMORY_HEAP_WALK_H

#include "../_base/compat.h"

#include <stddef.h>

enum plus_heap_origin {
    PLUS_HEAP_LISTED,   /* the collector has it in its lists */
    PLUS_HEAP_FROZEN,   /* the same, after gc.freeze() */
    PLUS_HEAP_REFERRED, /* met as what another object refers to; the collector does not know it */
    PLUS_HEAP_IN_FRAME, /* only an executing function holds it, as far as can be seen */
    PLUS_HEAP_AS_TYPE,  /* a class that is not on the heap, met as the type of an object */
};

/* What the walk calls; each returns 0 to go on, and anything else ends the walk. */
struct plus_heap_visitor {
    /* An object.  `parent` is the object that it was met through, NULL unless `origin` is PLUS_HEAP_REFERRED.
     * May be NULL. */
    int (*object)(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg);
    /* A reference, some of them twice, after `object` of `from`, before or after that of `to`.  May be NULL. */
    int (*reference)(PyObject *from, PyObject *to, void *arg);
    void *arg;
};

/* NULL, or why plus_heap_walk must not be called.  May make objects the first time. */
const char *
plus_heap_walk_refusal(void);

/* Whether UnsupportedPlatform was raised with it. */
bool
plus_heap_walk_raises(void);

/* 0; -ENOMEM: ended for lack of memory; or what a callback returned.  extra_bytes (may be NULL): what the walk took
 * at most for itself. */
int
plus_heap_walk(const struct plus_heap_visitor *visitor, size_t *extra_bytes);

/* Whether a walk would tell a reference from one object to the other.  `to` is compared only. */
bool
plus_heap_refers(PyObject *from, const PyObject *to);

#endif
