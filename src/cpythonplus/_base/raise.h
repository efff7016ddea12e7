/* Raising exceptions and finding objects of the Python half: in one place, so that messages name the failing call and
 * look alike.  GIL held. */
#pragma once

#include "compat.h"

/* The attribute of a module, which is imported if need be.  NULL with an exception. */
PyObject *
plus_import_from(const char *module_name, const char *name);

/* Call it with the tuple that Py_BuildValue() makes of the format, which is in parentheses.  A new reference, or NULL
 * with an exception. */
PyObject *
plus_call_from(const char *module_name, const char *name, const char *format, ...);

/* Raise the exception type that a module has by that name.  Returns -1. */
int
plus_raise_from(const char *module_name, const char *name);

/* Raise cpythonplus.UnsupportedPlatform(reason).  Returns NULL. */
PyObject *
plus_raise_unsupported(const char *reason);

/* On a free-threaded build: true, with UnsupportedPlatform raised.  Called before private structures are read. */
bool
plus_refuses_free_threaded(void);

/* The current exception, or none, set aside with its traceback while other code runs.  Each one that was taken must be
 * put back, which replaces the exception that is set by then, or dropped. */
struct plus_raised {
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *exception;
#else
    PyObject *type, *value, *traceback;
#endif
};

static inline struct plus_raised
plus_raised_take(void)
{
    struct plus_raised raised;

#if PY_VERSION_HEX >= 0x030C0000
    raised.exception = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
#endif
    return raised;
}

static inline void
plus_raised_put(struct plus_raised raised)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(raised.exception);
#else
    PyErr_Restore(raised.type, raised.value, raised.traceback);
#endif
}

static inline void
plus_raised_drop(struct plus_raised raised)
{
#if PY_VERSION_HEX >= 0x030C0000
    Py_XDECREF(raised.exception);
#else
    Py_XDECREF(raised.type);
    Py_XDECREF(raised.value);
    Py_XDECREF(raised.traceback);
#endif
}

/* Set the exception of plus_compat_take_exception() again, with its traceback; takes the reference. */
void
plus_raise_again(PyObject *exception);

/* Clear and return the current exception, as plus_compat_take_exception().  `earlier`, taken before, becomes its
 * context; it may be NULL. */
PyObject *
plus_take_exception_after(PyObject *earlier);

/* Raise the exception soon in the main thread, by a pending call.  True, and the reference is taken; false in another
 * thread, or if there is no room, and nothing was done. */
bool
plus_raise_soon(PyObject *exception);

/* Like plus_raise_soon(), but prints the exception if it cannot be raised.  Takes the reference in any case. */
void
plus_raise_soon_or_print(PyObject *exception);

/* Raise OSError for `error` (positive errno) with the name of the call.  Returns NULL. */
PyObject *
plus_raise_errno(const char *call, int error);
