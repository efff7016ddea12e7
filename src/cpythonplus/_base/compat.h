/* The differences between CPython 3.11 and 3.15, in one place.  Public C API only. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Headers of C that nearly all files need. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030C0000 /* the earlier names */
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

#if PY_VERSION_HEX < 0x030F0000 /* dict and frozendict */
#define PyAnyDict_Check PyDict_Check
#endif

#if PY_VERSION_HEX < 0x030C0000 /* the names of member types got their prefix in 3.12 */
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#define Py_T_OBJECT_EX T_OBJECT_EX
#define Py_T_BOOL T_BOOL
#define Py_T_INT T_INT
#define _Py_T_OBJECT T_OBJECT /* NULL reads as None */
#endif

#ifdef Py_REF_DEBUG
#define PLUS_COMPAT_BUILD "a debug build"
#else
#define PLUS_COMPAT_BUILD "an ordinary build"
#endif

/* Changes a reference count where no thread state is current, as in a thread that gives the GIL up: Py_INCREF of a debug
 * build counts all references of the current one's interpreter.  The count does not become 0. */
static inline void
plus_compat_count(PyObject *op, int more)
{
    Py_SET_REFCNT(op, Py_REFCNT(op) + more);
}

/* Debug builds also load extensions of ordinary builds.  This extension reads structures that differ between them, and
 * breaks assertions of debug builds.  GIL held. */
static inline bool
plus_compat_is_of_this_build(void)
{
    bool is_debug = PySys_GetObject("gettotalrefcount") != NULL;

#ifdef Py_REF_DEBUG
    return is_debug;
#else
    return !is_debug;
#endif
}

/* Whether the interpreter has an active JIT: 1, 0, or -1 with an exception.  GIL held. */
static inline int
plus_compat_has_jit(void)
{
#if PY_VERSION_HEX >= 0x030E0000
    PyObject *jit = PySys_GetObject("_jit");
    PyObject *enabled =
        jit != NULL ? PyObject_CallMethod(jit, "is_enabled", NULL) : Py_NewRef(Py_False);
    int is_enabled = enabled != NULL ? PyObject_IsTrue(enabled) : -1;

    Py_XDECREF(enabled);
    return is_enabled;
#else
    return 0;
#endif
}

/* The refusal of a build without a GIL, for all code that reads private layouts of the interpreter, or relies on
 * reference counts or on other threads standing still.  It applies with PYTHON_GIL=1 too: the build decides, as the GIL
 * may be on only during an import. */
#define PLUS_FREE_THREADED "a free-threaded build stores objects and reference counts differently"

/* Words that the collector has in front of an object; a free-threaded build has its flags in the object. */
#ifdef Py_GIL_DISABLED
#define PLUS_GC_HEADER_WORDS 0
#else
#define PLUS_GC_HEADER_WORDS 2
#endif

/* Around what reads or writes the parts of an object: a free-threaded build locks it. */
#ifdef Py_GIL_DISABLED
#define PLUS_BEGIN_LOCKED(op) Py_BEGIN_CRITICAL_SECTION(op)
#define PLUS_END_LOCKED() Py_END_CRITICAL_SECTION()
#else
#define PLUS_BEGIN_LOCKED(op)
#define PLUS_END_LOCKED()
#endif

/* May be called without the GIL: reads one atomic word. */
static inline bool
plus_compat_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0; /* the same function, public since 3.13 */
#endif
}

/* True if references to the object are not counted. */
static inline bool
plus_compat_is_immortal(PyObject *op)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_IsImmortal(op) != 0;
#elif PY_VERSION_HEX >= 0x030C0000
    return _Py_IsImmortal(op) != 0; /* the same function, public since 3.14 */
#else
    (void)op;
    return false;
#endif
}

/* Clear the current exception and return it, with its traceback. */
static inline PyObject *
plus_compat_take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* The exception type for requests to an interpreter that finalises; borrowed. */
static inline PyObject *
plus_compat_finalization_error(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyExc_PythonFinalizationError;
#else
    return PyExc_RuntimeError;
#endif
}
