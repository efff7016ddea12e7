/* Cold tasklets: parked for long, without pages for their stacks; only the used part is kept.
 *
 *     parked, sp set --trim--> cold: sp NULL, `cold` set, no pages --warm--> parked, sp set
 *
 * A thread trims its own tasklets when it needs many stacks more; trim_stacks() trims those of all threads.  The GIL is
 * held, so no other thread is in the middle of a switch.  A tasklet that its thread runs is never cold, not even while
 * it waits in C without the GIL.
 *
 * The used part is one piece: from the C stack's pointer over its top to the end of the frames, which lie above it.  It
 * comes back to the same addresses, so pointers inside it stay valid.  A pointer into it from elsewhere forbids the
 * move: see end_of_use().
 *
 * A tasklet is warmed before a switch to it; before something writes to it (the watchdog makes its frames report,
 * 3.11's tracing sets a flag); and before its frame is given out as an object, which points to the frame.  Code that
 * only reads (dumps, the garbage collector) uses plus_tasklet_frames(), which knows the distance between the copy and
 * the original addresses.
 *
 * Rejected: warming for reading; one dump would fetch all of a hundred thousand stacks back.  Rejected: moving frames;
 * generators and the evaluation loop on the C stack hold their addresses.
 */
#include "cold.h"

#include "../../_base/process/clock.h"

struct patience {
    uint64_t now_ns, parked_ns;
};

/* Returns the end of the used part, or NULL if it may not be moved.  Only a tasklet that parked through Python calls
 * alone may be moved: then everything on the C stack belongs to the evaluation loop and to this room, and no other code
 * has an address in it.  A C function that called back may have left one in the heap: the collector links objects
 * through list heads on its stack. */
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
