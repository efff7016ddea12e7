/* The gil room's part of the extension module. */
#pragma once

#include "../_base/compat.h"

extern PyMethodDef plus_gil_methods[];

extern PyMethodDef plus_stalls_methods[];

struct plus_stall;

/* Stalls of locks, each known by its address.  Called with the GIL; in a subinterpreter they do nothing.
 *
 *   look       reads the stack of the thread `owner` (its identity), which has the lock, once until it lets go.  Gives
 *              references back, which may run Python code.
 *   gave_up    the calling thread gives up waiting for the lock since since_ns
 *   note_lock  records the stall of a lock that the calling thread has released, if there are threads that wait for long
 *              (`waiting`) or have given up.  held_ns: since it was taken, or far too much.  made_by: the code whose
 *              instruction at byte made_at made the lock, or NULL
 *   forget     the lock was released by a thread that had not taken it: to wait for that is no stall */
void
plus_stalls_look(const void *lock, uint64_t owner);
void
plus_stalls_gave_up(const void *lock, uint64_t since_ns);
void
plus_stalls_note_lock(const void *lock, const struct plus_stall *waiting, uint64_t held_ns,
                      PyObject *made_by, int made_at);
void
plus_stalls_forget_lock(const void *lock);

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
