/* A Condition's use of a lock that is not one of ours.  As in threading.Condition, it calls the methods _is_owned,
 * _release_save and _acquire_restore, or falls back to acquire and release. */
#pragma once

#include "../../_base/compat.h"

/* Returns 1 or 0; -1 with an exception.  A lock without _is_owned is tried: if it can be acquired, the caller did not
 * own it. */
int
plus_foreign_is_owned(PyObject *lock);

/* Returns the argument for plus_foreign_acquire_restore(), None for a lock without _release_save; NULL with an
 * exception. */
PyObject *
plus_foreign_release_save(PyObject *lock);
/* Returns 0, or -1 with an exception. */
int
plus_foreign_acquire_restore(PyObject *lock, PyObject *saved);

/* Calls a method without arguments and drops its result.  Returns 0, or -1 with an exception. */
int
plus_foreign_call(PyObject *lock, const char *name);
