/* Which objects modules have brought along: what their namespaces lead to, and nobody else's.
 *
 * With the GIL held; calls no Python code and makes no object. */
#ifndef PLUS_MEMORY_OWN_OBJECTS_H
#define PLUS_MEMORY_OWN_OBJECTS_H

#include "../../_base/compat.h"
#include "../../_base/memory/granules.h"

struct plus_own_objects {
    struct plus_granules found;
    struct plus_granules shared; /* strings of them that others refer to, too */
    size_t count;
};

/* Finds what belongs to `modules`, a dict of namespaces by the modules' names; 0 or -ENOMEM.  Not followed are other
 * modules, their functions and their classes.  All zero is an empty set; freed by plus_own_objects_clear(). */
int
plus_own_objects_find(struct plus_own_objects *own, PyObject *modules);

/* To be told each reference of the heap: a string, which may be interned, is only theirs if nobody else has it. */
int
plus_own_objects_see(struct plus_own_objects *own, PyObject *from, PyObject *to);

/* Whether an object is one of them, or a weak reference to one. */
bool
plus_own_objects_has(struct plus_own_objects *own, PyObject *op);

void
plus_own_objects_clear(struct plus_own_objects *own);

#endif
