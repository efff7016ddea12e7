/* Monitoring events in the frames of parked tasklets (CPython 3.12 and later; 3.11 needs nothing).
 *
 * Called with the GIL held.  fork: nothing changes.
 */
#pragma once

#include "../../_interp/frames/instrumentation.h"
#include "../core/task.h"

#if PLUS_INSTRUMENTED

/* Gives the code of all parked tasklets the events that are asked for now.  It does so for all threads: this counts as
 * a change itself, and two threads that did it in turns would never finish.  Events that callbacks have switched off
 * with sys.monitoring.DISABLE come again.  Errors go to sys.unraisablehook. */
void
plus_instrument_parked(void);

/* If a tool asks for events, gives them to the code of frames that the calling thread has just rebuilt (snapshot.c). */
void
plus_instrument_new_frames(void);

#else
#define plus_instrument_new_frames() ((void)0)
#endif

/* Called by a tasklet that was just switched to: handles all parked tasklets, so that this happens once per change. */
static inline void
plus_instrument_if_changed(struct plus_scheduler *sched)
{
#if PLUS_INSTRUMENTED
    if (sched->turn.instrumented != plus_instrumentation_version(sched->tstate) &&
        !plus_instrumentation_must_wait(sched->tstate)) { /* if so, the next switch checks again */
        plus_instrument_parked();
    }
#endif
}
