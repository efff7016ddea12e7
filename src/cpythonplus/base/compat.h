/* What differs between CPython 3.11 and 3.15, in one place.  Public C API only. */
#ifndef PLUS_BASE_COMPAT_H
#define PLUS_BASE_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#if PY_VERSION_HEX < 0x030C0000 /* the member types got their prefix in 3.12 */
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#define Py_T_OBJECT_EX T_OBJECT_EX
#define Py_T_BOOL T_BOOL
#define Py_T_INT T_INT
#define _Py_T_OBJECT T_OBJECT /* NULL reads as None */
#endif

/* What a build without a GIL refuses with, wherever this package would read the interpreter's private layouts, count
 * on reference counts or on standing still.  With PYTHON_GIL=1 too: the build decides, and a GIL that is on may be so
 * for the moment of an import only. */
#define PLUS_FREE_THREADED "a free-threaded build keeps objects and their references in another way"

/* May be called without the GIL: reads one atomic word. */
static inline bool
plus_compat_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0; /* the same function before it got its public name in 3.13 */
#endif
}

/* What an interpreter that finalises refuses with; borrowed. */
static inline PyObject *
plus_compat_finalization_error(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyExc_PythonFinalizationError;
#else
    return PyExc_RuntimeError;
#endif
}

#endif
