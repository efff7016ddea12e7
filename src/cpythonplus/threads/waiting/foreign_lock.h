/* What a Condition does with a lock that is not one of ours, as threading.Condition does: it calls the
 * methods _is_owned, _release_save and _acquire_restore, or makes do with acquire and release. */
#ifndef PLUS_THREADS_FOREIGN_LOCK_H
#define PLUS_THREADS_FOREIGN_LOCK_H

#include "../../_base/compat.h"

/* 1 or 0; -1 with an exception.  A lock that does not say is tried: if it can be acquired, the caller
 * did not have it. */
int
plus_foreign_is_owned(PyObject *lock);

/* What plus_foreign_acquire_restore needs, None for a lock without _release_save; NULL with an
 * exception. */
PyObject *
plus_foreign_release_save(PyObject *lock);
/* 0, or -1 with an exception. */
int
plus_foreign_acquire_restore(PyObject *lock, PyObject *saved);

/* Calls a method without arguments and forgets its result.  0, or -1 with an exception. */
int
plus_foreign_call(PyObject *lock, const char *name);

#endif
