/* Trying the installation out in a forked child first.
 *
 * The probe needs a second thread, and the first second thread makes a process slower for good: glibc takes locks in
 * malloc and elsewhere that it leaves out in a single-threaded process (measured: 11 % of a loop over an sqlite
 * database in memory).  A program that never starts a thread must not pay for that.  So while the process has one
 * thread, a child gets the second one.  The child's address space is a copy, so the addresses of the GIL that it finds
 * are valid here too.
 *
 * Called with the GIL held.  Signals are blocked meanwhile, and the child's SIGCHLD is taken out, so the program sees
 * nothing of it.
 */
#pragma once

#include "control.h"

/* Returns whether a rehearsal is useful: libc says that this process never had a second thread. */
bool
plus_rehearsal_useful(void);

/* Runs `rehearse` in a child: it installs there, and returns 0, or -1 with one line in `reason`.  Then installs here
 * with the GIL that the child found.  Returns 0; -1 with one line in `reason`; or 1 if no child could be made, which
 * says nothing about the interpreter. */
int
plus_rehearsal_run(int (*rehearse)(void *argument, char *reason), void *argument,
                   char reason[PLUS_REASON_SIZE]);
