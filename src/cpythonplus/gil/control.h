/* Putting the hooks in place, proving that they see what they must see, and taking them out again.
 *
 * All functions here are called with the GIL held; install lets go of it for a moment.  After a
 * failure everything is as it was.
 */
#ifndef PLUS_GIL_CONTROL_H
#define PLUS_GIL_CONTROL_H

#include "hooks.h"
#include "policy.h"

#include <stddef.h>

/* Room for the reason of a refusal. */
#define PLUS_REASON_SIZE 256

/* Finds the interpreter's slots and its GIL.  Returns 0 (also when that was done before), or -1 with
 * one line in `reason`. */
int
plus_control_prepare(char reason[PLUS_REASON_SIZE]);

/* Schedules by `policy` from now on, or changes it.  plus_control_prepare was called. */
void
plus_control_run(const struct plus_policy *policy);

/* Only keeps requests away from atomic sections, if we do not schedule anyway. */
void
plus_control_track(void);

/* No scheduling any more.  The hooks leave the slots, unless atomic sections need them. */
void
plus_control_stop(void);

/* Lets a thread ask for the GIL; plus_control_proven() tells whether it got it.  The caller runs
 * bytecode meanwhile, since the interpreter answers a request there.  0 or -errno. */
int
plus_control_prove(void);
bool
plus_control_proven(void);

/* The GIL's mutex, for reading what it guards.  Both do nothing before plus_control_prepare. */
void
plus_control_lock(void);
void
plus_control_unlock(void);

#endif
