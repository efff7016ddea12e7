/* Every object that the garbage collector tracks.
 *
 *     PLUS_FACT_GC_RINGS holds   its lists are walked, including frozen objects, which gc.get_objects() leaves out
 *     it is refused              a listing is made from gc.get_objects(): slower, at least 8 bytes for each object,
 *                                and without frozen objects
 *
 * GIL held; for the calling interpreter only.  During a collection the objects that it has found unreachable are in
 * none of the lists. */
#pragma once

#include "../../_base/compat.h"

/* True if a listing is needed; PLUS_FACT_GC_RINGS must have been asked in this interpreter. */
bool
plus_gc_objects_need_listing(void);

/* Make the listing, if one is needed, and keep it until plus_gc_objects_end().  Calls may be nested: an inner one does
 * nothing.  The first call makes objects, and audit hooks of the program run (gc.get_objects), so the caller may hold
 * no borrowed references yet; from there to the end the caller must neither free an object nor give up the GIL.  A
 * forked copy of the process has the listing, too.  0; -ENOMEM; -EPERM if gc.get_objects() is refused by a hook, or has
 * been replaced. */
int
plus_gc_objects_begin(void);

void
plus_gc_objects_end(void);

/* The bytes of the listing; 0 without one. */
size_t
plus_gc_objects_listing_bytes(void);

/* Call `visit` for each object, the frozen ones last and with frozen = true, until it returns non-zero.  Returns that
 * result, or 0, or the error of plus_gc_objects_begin().  `visit` must neither make nor free tracked objects, nor give
 * up the GIL. */
int
plus_gc_objects_visit(int (*visit)(PyObject *op, bool frozen, void *arg), void *arg);

/* True if the object is in the listing. */
bool
plus_gc_objects_listed(const PyObject *op);

/* True if a tracked object that is not in the listing was made after it: never under a GIL. */
#ifdef Py_GIL_DISABLED
bool
plus_gc_objects_is_newer(const PyObject *op);
#else
#define plus_gc_objects_is_newer(op) false
#endif

/* The references to an object without those of the listing; PLUS_REFERENCES_UNKNOWN if they are not counted: the object is
 * immortal, or the count of a free-threaded build is deferred, or kept by thread, as for functions, modules and classes. */
#define PLUS_REFERENCES_UNKNOWN PY_SSIZE_T_MAX
#ifdef Py_GIL_DISABLED
Py_ssize_t
plus_gc_objects_references(PyObject *op);
#else
static inline Py_ssize_t
plus_gc_objects_references(PyObject *op)
{
    return plus_compat_is_immortal(op) ? PLUS_REFERENCES_UNKNOWN : Py_REFCNT(op);
}
#endif

/* True if there is exactly one, which is counted. */
static inline bool
plus_gc_objects_is_sole(PyObject *op)
{
#ifdef Py_GIL_DISABLED
    return plus_gc_objects_references(op) == 1;
#else
    return Py_REFCNT(op) == 1;
#endif
}
