/* The size of an object, found without running Python code. */
#pragma once

#include "../../_base/compat.h"

/* The bytes of the object itself: the result of its type's __sizeof__ if that is the interpreter's own, else the basic
 * size and items; plus the collector's header and the words in front of instances.  Inline attribute values are not
 * included: before 3.13 no public function tells their size.  GIL held; no exception is left set. */
Py_ssize_t
plus_object_bytes(PyObject *op);

/* The type's __sizeof__, not the instance's: a look-up there could run __getattr__.  Borrowed; NULL, without an
 * exception, if there is none. */
PyObject *
plus_sizeof_method(PyTypeObject *type);

/* True if instances have two words in front of the collector's header, for values or weak references, and the dict. */
static inline bool
plus_has_preheader(PyTypeObject *type)
{
#ifdef Py_TPFLAGS_PREHEADER
    return (type->tp_flags & Py_TPFLAGS_PREHEADER) != 0;
#else
    return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#endif
}

/* The two words in front of the collector's header; plus_has_preheader(Py_TYPE(op)) must be true. */
static inline const uintptr_t *
plus_preheader_of(PyObject *op)
{
    return (const uintptr_t *)op - 2 - PLUS_GC_HEADER_WORDS;
}
