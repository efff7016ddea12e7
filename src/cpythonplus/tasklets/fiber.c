/* See fiber.h. */
#include "fiber.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#define MARKED_BYTES (64 << 10)

/* Who has switched last; NULL: one that has ended.  Only the side that arrives learns the bounds of the stack
 * that was left: of a thread's own stack there is no other source. */
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
    /* What ran on it before has left its marks: the first of its functions did not return. */
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

void
plus_fiber_switch(PyThreadState *tstate, struct plus_fiber *from, struct plus_fiber *to)
{
    plus_pystate_exchange(tstate, &from->state, &to->state);
    announce(from, to);
    plus_switch(&from->sp, to->sp);
    arrive(from);
    plus_pystate_resumed(&from->state);
}

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
