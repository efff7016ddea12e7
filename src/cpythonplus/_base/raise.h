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

/* Raises OSError for `error` (positive errno) with the name of the call.  Returns NULL. */
PyObject *
plus_raise_errno(const char *call, int error);

#endif
