/* Putting the hooks in place, proving that they see what they must see, and taking them out again.
 *
 * All functions here are called with the GIL held, by any thread at any time.  Those that change
 * something let go of it for a moment, to wait for each other (the control lock: nothing else is held
 * while it is taken) and for the probe.  After a failure everything is as it was.
 *
 * fork while another thread is in here: the child takes the hooks out, and may install them anew.
 */
#ifndef PLUS_GIL_CONTROL_H
#define PLUS_GIL_CONTROL_H

#include "hooks.h"
#include "scheduler/policy.h"

/* Room for the reason of a refusal. */
#define PLUS_REASON_SIZE 256

/* Schedules by `policy` from now on, or changes it.  Returns 0, or -1 with one line in `reason` when
 * the interpreter's slots or its GIL are not as expected. */
int
plus_control_run(const struct plus_policy *policy, char reason[PLUS_REASON_SIZE]);

/* Only keeps requests away from atomic sections, if we do not schedule anyway.  Returns as above. */
int
plus_control_track(char reason[PLUS_REASON_SIZE]);

/* What was found: mutex NULL if nothing was. */
void
plus_control_found(struct plus_gil *gil);

/* As the preparation that plus_control_run begins with, but with a GIL that was found in a copy of this
 * process.  Returns as above. */
int
plus_control_adopt(const struct plus_gil *gil, char reason[PLUS_REASON_SIZE]);

/* No scheduling any more.  The hooks leave the slots, unless atomic sections need them.  Nothing is done while the
 * interpreter finalises. */
void
plus_control_stop(void);

/* Lets a thread ask for the GIL; plus_control_proven() tells whether it got it.  The caller runs
 * bytecode meanwhile, since the interpreter answers a request there.  0 or -errno. */
int
plus_control_prove(void);
bool
plus_control_proven(void);

/* The GIL's mutex, for reading what it guards.  Both do nothing before the first plus_control_run or _track. */
void
plus_control_lock(void);
void
plus_control_unlock(void);

#endif
