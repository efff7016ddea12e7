/* The objects that modules have brought along: reachable from their namespaces, and from no other module.
 *
 * With the GIL held; calls no Python code and makes no Python object. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/granules.h"

struct plus_own_objects {
    struct plus_granules found;
    struct plus_granules shared; /* found strings that other objects refer to, too */
    size_t count;
};

/* Finds the objects of `modules`, a dict of namespaces by the modules' names; 0 or -ENOMEM.  Other modules, their
 * functions and their classes are not followed.  All zero is an empty set; freed by plus_own_objects_clear(). */
int
plus_own_objects_find(struct plus_own_objects *own, PyObject *modules);

/* Call this with each reference of the heap: a string, which may be interned, is not theirs if another object refers
 * to it. */
int
plus_own_objects_see(struct plus_own_objects *own, PyObject *from, PyObject *to);

/* True if the object is one of them, or a weak reference to one. */
bool
plus_own_objects_has(struct plus_own_objects *own, PyObject *op);

void
plus_own_objects_clear(struct plus_own_objects *own);
