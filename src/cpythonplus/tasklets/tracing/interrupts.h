/* Makes Python code report the places where it can be interrupted: calls of functions, resumptions of generators, jumps
 * back.  The reports go to plus_watchdog_event(), through struct plus_above.
 *
 * Called with the GIL held; an exception that is set stays set.  Without users, nothing is installed.
 */
#pragma once

#include "../core/task.h"

/* 3.12+: takes a tool of sys.monitoring, once, and keeps it; further calls do no harm.  Returns 0, or -1 with
 * RuntimeError: all tools are in use. */
int
plus_interrupts_prepare(void);

/* Switches the reports on for the thread of `sched`, which may be another thread.  3.12+: other threads' code reports
 * too, and is slowed down.  on and off come in pairs.  Returns 0, or -1 with an exception. */
int
plus_interrupts_on(struct plus_scheduler *sched);
void
plus_interrupts_off(struct plus_scheduler *sched);

/* Whether running code may never report events that are switched on meanwhile, so that they have to be on before.
 * Returns 1, 0, or -1 with an exception.  3.14's JIT leaves an invalidated compiled loop before the instruction that
 * follows the jump back, and a loop that jumps to itself (`while True: pass`) has none: only an exception ends it.
 * With the events on it is not compiled. */
static inline int
plus_interrupts_come_too_late(void)
{
    return PY_VERSION_HEX < 0x030F0000 ? plus_compat_has_jit() : 0;
}

/* The number of times that events were switched on or off here (3.11: 0); `pretended`, for tests, is added from now
 * on. */
uint64_t
plus_interrupts_changes(uint64_t pretended);

/* With the reports on, called before a parked tasklet goes on: the interpreter has not instrumented the code of its
 * frames. */
void
plus_interrupts_extend(struct plus_tasklet *task);

/* Like plus_interrupts_extend(), for the running tasklet, whose frames may have no events yet. */
void
plus_interrupts_extend_running(struct plus_scheduler *sched);

/* With the reports on, called in a tasklet that begins or that may have set a trace function. */
#if PY_VERSION_HEX < 0x030C0000
void
plus_interrupts_begin(struct plus_scheduler *sched);
#else
#define plus_interrupts_begin(sched) ((void)0)
#endif
