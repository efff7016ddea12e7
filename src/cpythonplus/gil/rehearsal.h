/* Trying the installation out in a forked child first.
 *
 * The probe needs a second thread, and from its first second thread on a process is slower for good:
 * glibc takes locks in malloc and elsewhere that it leaves out while there is only one (measured:
 * 11 % of a loop over an sqlite database in memory).  A program that never starts a thread must not
 * pay for that.  So while the process has one thread the child is given the second one; its address
 * space is a copy, so the GIL that it found is where ours is.
 *
 * Called with the GIL held.  Signals are blocked meanwhile, and the SIGCHLD of the child's end is taken
 * out, so the program sees nothing of it.
 */
#ifndef PLUS_GIL_REHEARSAL_H
#define PLUS_GIL_REHEARSAL_H

#include "control.h"

/* Whether a rehearsal is of use: libc says that this process never had a second thread. */
bool
plus_rehearsal_useful(void);

/* Runs `rehearse` in a child: it installs, and returns 0, or -1 with one line in `reason`.  Then
 * installs here what was found there.  Returns 0; -1 with one line in `reason`; or 1 when there could
 * be no child, which says nothing about the interpreter. */
int
plus_rehearsal_run(int (*rehearse)(void *argument, char *reason), void *argument,
                   char reason[PLUS_REASON_SIZE]);

#endif
