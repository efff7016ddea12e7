/* Tasklets that are parked for long keep what is in use of their stacks, and nothing else.
 *
 *     parked, sp set --trim--> cold: sp NULL, `cold` set, no pages --warm--> parked, sp set
 *
 * Trimmed are a thread's own tasklets when it needs many stacks more, and everybody's by trim_stacks(): with the GIL
 * held, no other thread is in the middle of a switch.  What a thread runs is never cold, not even when it waits in C
 * without the GIL.
 *
 * In use is one piece: from the C stack's pointer over its top to the end of the frames, which lie above it.  It comes
 * back to the same addresses, so what points into it from within needs no change.  What points into it from elsewhere
 * forbids it: see end_of_use().
 *
 * Warmed is who is about to be switched to, who is about to be written to (the frames of one that the watchdog makes
 * report, a flag of 3.11's tracing), and whose frame is given out as an object, which points to it.  Who only reads
 * (dumps, the garbage collector) goes by plus_tasklet_frames(), which knows how far the copy lies from where its
 * addresses say.
 *
 * Rejected: to warm for reading.  One dump would fetch all of a hundred thousand stacks back.  Rejected: to move
 * frames.  Generators and the evaluation loop on the C stack have their addresses.
 */
#include "cold.h"

#include "../../_base/process/clock.h"

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
cool(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    const struct patience *patience = arg;

    if (!plus_is_parked(task) || !plus_waits_long(task, patience->now_ns, patience->parked_ns)) {
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
    size_t vacated = sched == plus_scheduler_own && !sched->in_callback
                         ? plus_above.vacate(sched, parked_ns, SIZE_MAX)
                         : 0;

    return vacated + plus_stacks_trim(&sched->stacks, cool, &patience);
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
