/* A C stack with its part of the thread state, and the switch from one to another.
 *
 * Called with the GIL held.  A fiber belongs to one thread; others read parked ones.
 */
#pragma once

#include "../../_interp/frames/pystate.h"
#include "stacks.h"
#include "switch.h"

struct plus_fiber {
    void *sp; /* pointer of its C stack while it is parked; NULL: not begun, or cold */
    struct plus_pystate state;
#ifdef __SANITIZE_ADDRESS__
    void *fake_stack;          /* AddressSanitizer's, while parked */
    const void *sanitizer_low; /* bounds of its C stack for AddressSanitizer */
    size_t sanitizer_bytes;
#endif
};

/* Prepares a fiber to begin on an unused stack, with no frames, no exception and full recursion limits; it keeps its
 * context and the tracers that it was given. */
void
plus_fiber_fresh(struct plus_fiber *fiber, PyThreadState *tstate, const struct plus_stack *stack);

/* Leaves `from`, which runs, for `to`; returns when another fiber switches back. */
#ifdef __SANITIZE_ADDRESS__
void
plus_fiber_switch(PyThreadState *tstate, struct plus_fiber *from, struct plus_fiber *to);
#else
static inline void
plus_fiber_switch(PyThreadState *tstate, struct plus_fiber *from, struct plus_fiber *to)
{
    plus_pystate_exchange(tstate, &from->state, &to->state);
    plus_switch(&from->sp, to->sp);
    plus_pystate_resumed(&from->state);
}
#endif

/* The first call on a fresh stack. */
void
plus_fiber_arrived(void);

/* Leaves a fiber that has ended. */
_Noreturn void
plus_fiber_leave(PyThreadState *tstate, struct plus_fiber *to);
