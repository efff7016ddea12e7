/* Making Python code report the places where it can be interrupted: calls of functions, resumptions of generators,
 * jumps back.  What it reports goes to plus_watchdog_event(), through struct plus_above.
 *
 * All with the GIL held; an exception that is set stays set.  While nobody has it on, nothing is installed.
 */
#ifndef PLUS_TASKLETS_INTERRUPTS_H
#define PLUS_TASKLETS_INTERRUPTS_H

#include "../core/task.h"

/* 3.12+: takes a tool of sys.monitoring, once, and keeps it; several calls do no harm.  0, or -1 with RuntimeError:
 * all are taken. */
int
plus_interrupts_prepare(void);

/* For the thread of `sched`, of another thread, too.  3.12+: other threads' code reports as well, and is slowed
 * down.  On after off after on; 0, or -1 with an exception. */
int
plus_interrupts_on(struct plus_scheduler *sched);
void
plus_interrupts_off(struct plus_scheduler *sched);

/* Whether code that runs may never report what is asked for meanwhile, so that it has to be on before.  1, 0, or -1
 * with an exception.  3.14's JIT leaves a compiled loop that is no longer valid before the instruction that follows
 * the jump back, and one that jumps to itself (`while True: pass`) has none: nothing but an exception ends it.  With
 * the events on it is not compiled. */
static inline int
plus_interrupts_come_too_late(void)
{
    return PY_VERSION_HEX < 0x030F0000 ? plus_compat_has_jit() : 0;
}

/* How often events were switched on or off here (3.11: 0); `pretended`, for tests: so many more from now on. */
uint64_t
plus_interrupts_changes(uint64_t pretended);

/* While it is on, before a parked tasklet goes on: the interpreter does not look for what that executes. */
void
plus_interrupts_extend(struct plus_tasklet *task);

/* The same for the running one, whose frames are new to the interpreter. */
void
plus_interrupts_extend_running(struct plus_scheduler *sched);

/* While it is on, in a tasklet that begins or that may have set a trace function. */
#if PY_VERSION_HEX < 0x030C0000
void
plus_interrupts_begin(struct plus_scheduler *sched);
#else
#define plus_interrupts_begin(sched) ((void)0)
#endif

#endif
