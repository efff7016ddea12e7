/* The steps of a switch from one fiber of a thread to another:
 *
 *   1. The thread state's part of `from` (frames, exceptions, depths, tracers, context, place of its data stack) is
 *      saved in `from`, and that of `to` is loaded.  References move with it; no count changes except that of compiled
 *      code (3.14 on).
 *   2. AddressSanitizer, if present, is told which stack comes next.
 *   3. The C stack is left: registers are saved on it, its pointer in from->sp.
 *   4. When another fiber switches back, the same call returns, on the stack of `from`, whose part of the thread state
 *      is loaded already.  The sanitizer is told of the arrival; the references that step 1 added are dropped.
 *
 * Between steps 1 and 3 the interpreter would see the frames of one tasklet above the C stack of another.  So no
 * function is called there that allocates, frees, or releases the GIL.  Dropping the references in step 4 may free
 * objects, so it comes last.
 *
 * A fresh stack begins in the function that was given to plus_switch_prepare(), not after a step 3 of its own: that
 * function calls plus_fiber_arrived() first.  A fiber that ends is never resumed: plus_fiber_leave() saves nothing, and
 * the content of its stack is lost.  The stack itself is in use until the other side has arrived, so it is given back
 * there.
 *
 * Rejected: exchanging whole thread states.  Thread-local storage, the identity of the thread and the interpreter's
 * list of threads would come with them, and the GIL has its own variable for its holder.
 */
/* The stack protector's check would slow down each spawn; `bounds` is no buffer. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC optimize("no-stack-protector")
#endif

#include "fiber.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#define MARKED_BYTES (64 << 10)

/* The fiber that switched last; NULL: it has ended.  Only the side that arrives learns the bounds of the stack that was
 * left; for a thread's own stack there is no other source. */
static _Thread_local struct plus_fiber *came_from;

static void
announce(struct plus_fiber *from, const struct plus_fiber *to)
{
    came_from = from;
    __sanitizer_start_switch_fiber(from != NULL ? &from->fake_stack : NULL, to->sanitizer_low,
                                   to->sanitizer_bytes);
}

static void
arrive(struct plus_fiber *here)
{
    const void *low;
    size_t bytes;

    __sanitizer_finish_switch_fiber(here != NULL ? here->fake_stack : NULL, &low, &bytes);
    if (came_from != NULL) {
        came_from->sanitizer_low = low;
        came_from->sanitizer_bytes = bytes;
    }
}

static void
describe(struct plus_fiber *state, const struct plus_stack *stack)
{
    /* Former users of the stack have left marks: the first of their functions did not return. */
    char *low = stack->top - stack->low > MARKED_BYTES ? stack->top - MARKED_BYTES : stack->low;

    __asan_unpoison_memory_region(low, (size_t)(stack->high - low));
    state->fake_stack = NULL;
    state->sanitizer_low = stack->low;
    state->sanitizer_bytes = (size_t)(stack->top - stack->low);
}
#else
#define announce(from, to) ((void)0)
#define arrive(here) ((void)0)
#define describe(state, stack) ((void)0)
#endif

void
plus_fiber_fresh(struct plus_fiber *fiber, PyThreadState *tstate, const struct plus_stack *stack)
{
    struct plus_bounds bounds = {stack->low, stack->top, stack->high};

    plus_pystate_fresh(&fiber->state, tstate, &bounds);
    describe(fiber, stack);
}

#ifdef __SANITIZE_ADDRESS__
void
plus_fiber_switch(PyThreadState *tstate, struct plus_fiber *from, struct plus_fiber *to)
{
    plus_pystate_exchange(tstate, &from->state, &to->state);
    announce(from, to);
    plus_switch(&from->sp, to->sp);
    arrive(from);
    plus_pystate_resumed(&from->state);
}
#endif

void
plus_fiber_arrived(void)
{
    arrive(NULL);
}

void
plus_fiber_leave(PyThreadState *tstate, struct plus_fiber *to)
{
    void *nowhere;

    plus_pystate_load(tstate, &to->state);
    announce(NULL, to);
    plus_switch(&nowhere, to->sp);
    Py_FatalError("a tasklet that has ended was switched to");
}
