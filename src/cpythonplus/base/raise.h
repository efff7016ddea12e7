/* How C code raises: one place, so that messages name the failing call and look alike.
 * All with the GIL held. */
#ifndef PLUS_BASE_RAISE_H
#define PLUS_BASE_RAISE_H

#include "compat.h"

/* Raises cpythonplus.UnsupportedPlatform(reason).  Returns NULL. */
PyObject *
plus_raise_unsupported(const char *reason);

/* Raises OSError for `error` (positive errno) with the name of the call.  Returns NULL. */
PyObject *
plus_raise_errno(const char *call, int error);

#endif
