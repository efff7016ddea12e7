/* How C code raises and finds what the Python half has: one place, so that messages name the failing call and look alike.
 * All with the GIL held. */
#ifndef PLUS_BASE_RAISE_H
#define PLUS_BASE_RAISE_H

#include "compat.h"

/* The attribute of a module, which is imported if need be.  NULL with an exception. */
PyObject *
plus_import_from(const char *module_name, const char *name);

/* Calls it with the tuple that Py_BuildValue() makes of the format, which is in parentheses.  A new
 * reference, or NULL with an exception. */
PyObject *
plus_call_from(const char *module_name, const char *name, const char *format, ...);

/* Raises the exception type that a module has by that name.  Returns -1. */
int
plus_raise_from(const char *module_name, const char *name);

/* Raises cpythonplus.UnsupportedPlatform(reason).  Returns NULL. */
PyObject *
plus_raise_unsupported(const char *reason);

/* On a free-threaded build: true, with UnsupportedPlatform raised.  Asked before the first look. */
bool
plus_refuses_free_threaded(void);

/* An exception that is set aside with its traceback, while something else is done; none is one, too.  Each that was
 * taken is put back, in place of whatever is set by then, or dropped. */
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

/* What plus_compat_take_exception() took is set again, with its traceback; takes the reference. */
void
plus_raise_again(PyObject *exception);

/* Takes the exception that is set, as plus_compat_take_exception().  `earlier`, taken before, becomes its context; or NULL. */
PyObject *
plus_take_exception_after(PyObject *earlier);

/* The same in whatever the main thread is about to do next: by a pending call.  True, and the reference is taken; false
 * in another thread, or where there is no room, and nothing was done. */
bool
plus_raise_soon(PyObject *exception);

/* The same for who cannot keep it: where it is not possible, the exception is printed.  Takes the reference. */
void
plus_raise_soon_or_print(PyObject *exception);

/* Raises OSError for `error` (positive errno) with the name of the call.  Returns NULL. */
PyObject *
plus_raise_errno(const char *call, int error);

#endif
