/* The gil room's part of the extension module. */
#pragma once

#include "../_base/compat.h"

#include <stdbool.h>

extern PyMethodDef plus_gil_methods[];

extern PyMethodDef plus_stalls_methods[];

struct plus_stall;

/* Records the stall of a lock that the calling thread has released; made_by: the code whose instruction at byte
 * made_at made the lock, or NULL.  Called with the GIL; in a subinterpreter it does nothing. */
void
plus_stalls_note_lock(const struct plus_stall *stall, PyObject *made_by, int made_at);

/* Adds `atomic`; each interpreter has its own.  Returns 0, or -1 with an exception. */
int
plus_atomic_init(PyObject *module);

/* From plus_atomic_hold() to plus_atomic_let_go() the GIL is not taken away from this thread, as in an atomic section.
 * Both may let other threads run.  Returns false, without an exception, if the GIL cannot be held. */
bool
plus_atomic_hold(void);
void
plus_atomic_let_go(void);

/* (sections, contended, overlong, longest_ns, abandoned), a new tuple. */
PyObject *
plus_atomic_counts(void);
void
plus_atomic_reset_counts(void);
