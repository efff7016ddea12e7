/* The references of an object, including those that tp_traverse leaves out.
 *
 * The collector asks only for references that can be part of a cycle. tp_traverse leaves out parts of code objects,
 * string keys of dicts, names of classes, dicts of instances and others, and it must not be called for a static
 * class. */
#pragma once

#include "../facts/facts.h"
#include "numpy_arrays.h"

/* Call `visit` for each reference of `op`, some of them twice; returns the first non-zero result, else 0.  Runs no
 * Python code and makes no object.  GIL held; `visit` must not change `op`. */
int
plus_referents_visit(PyObject *op, visitproc visit, void *arg);

/* Objects of classes with this tp_traverse are traversed although they have no collector header: memory.Record.  It is
 * one function for the process, set while the extension is initialised. */
void
plus_referents_headless(traverseproc traverse);

/* False if the object has no references: strings, numbers and the like. */
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

/* True if the object's tp_traverse may be called: not for static classes, nor for types that the collector would never
 * traverse, except the headless ones. */
bool
plus_can_be_traversed(PyObject *op);

/* True if the first word of a header leads to the header of `op`.  Its two low bits are the collector's flags: in
 * 3.14.0 to 3.14.4, whose collector is incremental, one of them is set outside of collections too. */
static inline bool
plus_gc_leads_to(uintptr_t word, const PyObject *op)
{
    return (word & ~(uintptr_t)3) == (uintptr_t)op - 2 * sizeof(uintptr_t);
}

/* True if PLUS_FACT_GC_HEADER has been asked and does not hold.  Only its probe writes this. */
extern bool plus_gc_header_refused;

/* As PyObject_IS_GC() and PyObject_GC_IsTracked() together, without the calls, as it is used for each reference in the
 * heap.  The collector's header is in front of the object, and its first word links tracked objects
 * (Include/internal/pycore_gc.h, the same from 3.11 to 3.15).  If the header is elsewhere, the calls are made.
 * PLUS_FACT_GC_HEADER must have been asked. */
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
