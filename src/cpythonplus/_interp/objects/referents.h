/* What an object refers to: more than tp_traverse tells.
 *
 * The collector asks only for what can be in a cycle.  Parts of code objects, string keys of dicts, names of
 * classes, dicts of instances and the like are left out by tp_traverse, and it must not be called for a class that is
 * not on the heap. */
#ifndef PLUS_INTERP_REFERENTS_H
#define PLUS_INTERP_REFERENTS_H

#include "../facts/facts.h"
#include "numpy_arrays.h"

/* Calls `visit` for each reference that `op` has, some of them twice; returns the first result that is not 0,
 * else 0.  Runs no Python code and makes nothing.  With the GIL held; `visit` must not change `op`. */
int
plus_referents_visit(PyObject *op, visitproc visit, void *arg);

/* Objects of classes with this tp_traverse are asked although the collector has no header for them: memory.Record.  It is
 * one function for the process, set while the extension is initialised. */
void
plus_referents_headless(traverseproc traverse);

/* Whether plus_referents_visit may find anything: not for strings, numbers and the like. */
static inline bool
plus_referents_possible(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    return type->tp_traverse != NULL || type == &PyCode_Type || PyType_Check(op) ||
           plus_is_numpy_array_type(type);
}

/* As PyObject_IS_GC(), without the call. */
static inline bool
plus_gc_has_header(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    return PyType_IS_GC(type) && (type->tp_is_gc == NULL || type->tp_is_gc(op));
}

/* Whether its tp_traverse may be called: not of classes that are not on the heap, nor of types for which the collector would
 * never do it, but for the one above. */
bool
plus_can_be_traversed(PyObject *op);

/* Whether the first word of a header leads to that of `op`.  Its two low bits are the collector's own: in 3.14.0 to
 * 3.14.4, whose collector is incremental, one of them is set outside of collections too. */
static inline bool
plus_gc_leads_to(uintptr_t word, const PyObject *op)
{
    return (word & ~(uintptr_t)3) == (uintptr_t)op - 2 * sizeof(uintptr_t);
}

/* PLUS_FACT_GC_HEADER has been asked and does not hold.  The probe alone writes it. */
extern bool plus_gc_header_refused;

/* As PyObject_IS_GC() and PyObject_GC_IsTracked() together, without the calls: both are asked for each
 * reference in the heap.  The collector's header lies in front of the object, and its first word links those
 * that are tracked (Include/internal/pycore_gc.h, the same from 3.11 to 3.15).  The calls are made if the header lies
 * elsewhere.  PLUS_FACT_GC_HEADER must have been asked. */
static inline bool
plus_gc_is_tracked(PyObject *op)
{
    if (!plus_gc_has_header(op)) {
        return false;
    }
#ifndef Py_GIL_DISABLED
    if (!plus_gc_header_refused) {
        return ((const uintptr_t *)PLUS_AT(PLUS_FACT_GC_HEADER, op))[-2] != 0;
    }
#endif
    return PyObject_GC_IsTracked(op) != 0;
}

#endif
