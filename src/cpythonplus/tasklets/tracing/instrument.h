/* Monitoring events in the frames of parked tasklets (CPython 3.12 and later; before, nothing is to do).
 *
 * All with the GIL held.  After a fork: nothing changes.
 */
#ifndef PLUS_TASKLETS_INSTRUMENT_H
#define PLUS_TASKLETS_INSTRUMENT_H

#include "../../_interp/frames/instrumentation.h"
#include "../core/task.h"

#if PLUS_INSTRUMENTED

/* Gives the code of all parked tasklets the events that are asked for now.  Of all threads: this counts as a change
 * itself, and two threads that did it in turns would never be through.  Events that callbacks have switched off with
 * sys.monitoring.DISABLE come again.  Errors go to sys.unraisablehook. */
void
plus_instrument_parked(void);

/* The same for frames of the calling thread that are new to the interpreter, if a tool asks for anything. */
void
plus_instrument_new_frames(void);

#else
#define plus_instrument_new_frames() ((void)0)
#endif

/* For a tasklet that has just come back: the others are looked at as well, so that this happens once for each
 * change. */
static inline void
plus_instrument_if_changed(struct plus_scheduler *sched)
{
#if PLUS_INSTRUMENTED
    if (sched->turn.instrumented != plus_instrumentation_version(sched->tstate) &&
        !plus_instrumentation_must_wait(sched->tstate)) { /* else the next switch asks again */
        plus_instrument_parked();
    }
#endif
}

#endif
