/* Tasklets that are parked for long keep what is in use of their stacks, and nothing else. */
#include "cold.h"

#include "../_base/clock.h"

#include <stddef.h>

struct patience {
    uint64_t now_ns, parked_ns;
};

/* Only what came here by Python calls alone: then all that is on the C stack belongs to the evaluation loop and to
 * this room, and nobody else has an address in it.  A C function that called back may have left one in the
 * heap: the collector links objects through list heads on its stack. */
static char *
end_of_use(const struct plus_tasklet *task)
{
    struct plus_frames frames = plus_tasklet_frames(task);

    if (task->uncalled || plus_frames_nesting(&frames) > 0 || !plus_frames_may_move(&frames)) {
        return NULL;
    }
    return plus_pystate_frames_end(&task->fiber.state, task->stack->top);
}

static bool
waits_long(const struct plus_tasklet *task, const struct patience *patience)
{
    return !plus_is_runnable(task) && patience->now_ns - task->parked_ns >= patience->parked_ns;
}

static bool
cool(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    if (!plus_is_parked(task) || !waits_long(task, arg)) {
        return false;
    }
    char *end = end_of_use(task);

    if (end != NULL) {
        task->cold = plus_stack_copy_out(task->stack, task->fiber.sp, end);
    }
    if (task->cold != NULL) {
        task->fiber.sp = NULL;
    }
    return task->cold != NULL;
}

size_t
plus_scheduler_trim(struct plus_scheduler *sched, uint64_t parked_ns)
{
    struct patience patience = {.now_ns = plus_now_coarse_ns(), .parked_ns = parked_ns};

    return plus_stacks_trim(&sched->stacks, cool, &patience);
}

void
plus_tasklet_warm(struct plus_tasklet *task)
{
    struct plus_slice *slice = task->cold;

    if (slice != NULL) {
        task->fiber.sp = slice->low;
        task->cold = NULL;
        plus_stack_put_back(task->stack, slice);
    }
}
