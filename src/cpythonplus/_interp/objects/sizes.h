/* What an object takes, without running Python code. */
#ifndef PLUS_INTERP_SIZES_H
#define PLUS_INTERP_SIZES_H

#include "../../_base/compat.h"

#include <stdint.h>

/* Bytes of the object itself: what its type's __sizeof__ says where that is the interpreter's own, else the basic size
 * and items; with the collector's header and the words in front of instances.  Inline attribute values are not
 * in it: before 3.13 nothing public tells their size.  GIL held; no exception is left set. */
Py_ssize_t
plus_object_bytes(PyObject *op);

/* __sizeof__ as the type has it, not the instance: looking there could run __getattr__.  Borrowed; NULL, without an
 * exception, if there is none. */
PyObject *
plus_sizeof_method(PyTypeObject *type);

/* Whether instances have two words in front of the collector's, for values or weak references, and the dict. */
static inline bool
plus_has_preheader(PyTypeObject *type)
{
#ifdef Py_TPFLAGS_PREHEADER
    return (type->tp_flags & Py_TPFLAGS_PREHEADER) != 0;
#else
    return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#endif
}

/* These two words, of an instance that has them. */
static inline const uintptr_t *
plus_preheader_of(PyObject *op)
{
    return (const uintptr_t *)op - 4;
}

#endif
