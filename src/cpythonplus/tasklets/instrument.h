/* Monitoring events in the frames of parked tasklets (CPython 3.12 and later; before, nothing is to do).
 *
 * All with the GIL held.  After a fork: nothing changes.
 */
#ifndef PLUS_TASKLETS_INSTRUMENT_H
#define PLUS_TASKLETS_INSTRUMENT_H

#include "scheduler.h"

#define PLUS_INSTRUMENTED (PY_VERSION_HEX >= 0x030C0000)

#if PLUS_INSTRUMENTED

/* Gives the code of all parked tasklets the events that are asked for now.  Of all threads: this counts as a change
 * itself, and two threads that did it in turns would never be through.  Events that callbacks have switched off with
 * sys.monitoring.DISABLE come again.  Errors go to sys.unraisablehook. */
void
plus_instrument_parked(void);

uint64_t
plus_instrument_version_slow(PyThreadState *tstate);

/* Changes whenever a tool asks for other events. */
static inline uint64_t
plus_instrument_version(PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return plus_instrument_version_slow(tstate);
#else
    /* Its low byte are requests to the evaluation loop, which other threads may set at any time. */
    return __atomic_load_n(&tstate->eval_breaker, __ATOMIC_RELAXED) & ~(uintptr_t)0xff;
#endif
}

#endif

/* Not now: from 3.14 on the interpreter rewrites code with the lock of the list of threads held, and lets a list go
 * meanwhile.  That runs whatever deallocations were put off, finalisers among them; one that switches, or calls
 * sys.settrace(), waits for that lock for ever.  The next switch asks again. */
static inline bool
plus_instrument_must_wait(const PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030E0000
    return tstate->delete_later != NULL;
#else
    (void)tstate;
    return false;
#endif
}

/* For a tasklet that has just come back: the others are looked at as well, so that this happens once for each
 * change. */
static inline void
plus_instrument_if_changed(struct plus_scheduler *sched)
{
#if PLUS_INSTRUMENTED
    if (sched->instrumented != plus_instrument_version(sched->tstate) &&
        !plus_instrument_must_wait(sched->tstate)) {
        plus_instrument_parked();
    }
#endif
}

#endif
