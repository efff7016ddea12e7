/* Installing the hooks, proving that they see the interpreter's calls, and taking them out again.
 *
 * All functions are called with the GIL held, by any thread at any time.  Functions that change something release
 * the GIL for a moment, to wait for each other (the control lock; no other lock is held while it is taken) and for
 * the probe.  After a failure everything is as it was.
 *
 * fork while another thread is in here: the child takes the hooks out, and may install them again.
 */
#pragma once

#include "hooks.h"
#include "scheduler/policy.h"

/* Room for the reason of a refusal. */
#define PLUS_REASON_SIZE 256

/* Schedules by `policy` from now on, or changes the policy.  Returns 0, or -1 with one line in `reason` if the
 * interpreter's slots or its GIL are not as expected. */
int
plus_control_run(const struct plus_policy *policy, char reason[PLUS_REASON_SIZE]);

/* Makes atomic sections work without scheduling: keeps requests for the GIL away from them.  Does nothing while
 * plus_control_run() schedules.  Returns 0, or -1 with one line in `reason`. */
int
plus_control_track(char reason[PLUS_REASON_SIZE]);

/* The GIL that was found; its mutex is NULL if none was. */
void
plus_control_found(struct plus_gil *gil);

/* The preparation of plus_control_run, but with a GIL that a copy of this process found.  Returns as above. */
int
plus_control_adopt(const struct plus_gil *gil, char reason[PLUS_REASON_SIZE]);

/* Stops scheduling.  The hooks leave the slots, unless atomic sections need them.  Does nothing while the interpreter
 * finalises. */
void
plus_control_stop(void);

/* Starts a thread that asks for the GIL; plus_control_proven() tells whether it got the GIL.  The caller runs bytecode
 * meanwhile, since there the interpreter answers a request.  Returns 0 or -errno. */
int
plus_control_prove(void);
bool
plus_control_proven(void);

/* Lock and unlock the GIL's mutex, to read fields that it guards.  Before the first plus_control_run or _track both do
 * nothing. */
void
plus_control_lock(void);
void
plus_control_unlock(void);
