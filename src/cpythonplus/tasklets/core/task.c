/* The list of all schedulers, their tasklets, and the tasklets' frames. */
#include "task.h"

_Thread_local struct plus_scheduler *plus_scheduler_own PLUS_FAST_TLS;
struct plus_scheduler *plus_schedulers;
PyObject *plus_tasklet_exit;
struct plus_above plus_above;

struct plus_scheduler *
plus_scheduler_of(PyThreadState *tstate)
{
    struct plus_scheduler *sched = plus_schedulers;

    while (sched != NULL && sched->tstate != tstate) {
        sched = sched->next_scheduler;
    }
    return sched;
}

struct plus_scheduler *
plus_scheduler_of_thread(unsigned long ident)
{
    struct plus_scheduler *sched = plus_schedulers;

    while (sched != NULL && plus_pystate_ident(sched->tstate) != ident) {
        sched = sched->next_scheduler;
    }
    return sched;
}

void
plus_scheduler_release(struct plus_scheduler *sched)
{
    if (--sched->references == 0) {
        plus_stacks_free(&sched->stacks);
        plus_timers_free(&sched->parking.timers);
        free(sched->runs.callers);
        free(sched);
    }
}

struct visit {
    int (*each)(struct plus_tasklet *, void *);
    void *arg;
};

static int
visit_owner(void *owner, void *arg)
{
    const struct visit *visit = arg;
    struct plus_tasklet *task = owner;

    return task->started && task->alive && plus_is_in_use(task) ? visit->each(task, visit->arg) : 0;
}

int
plus_scheduler_each(struct plus_scheduler *sched, int (*each)(struct plus_tasklet *, void *),
                    void *arg)
{
    struct visit visit = {each, arg};
    int result = plus_stacks_each(&sched->stacks, visit_owner, &visit);

    for (struct plus_tasklet *task = sched->vacated; task != NULL && result == 0;
         task = task->vacated_next) {
        result = plus_is_in_use(task) ? each(task, arg) : 0;
    }
    return result;
}

void
plus_vacated_note(struct plus_tasklet *task)
{
    task->vacated = true;
    task->vacated_prev = NULL;
    task->vacated_next = task->sched->vacated;
    if (task->vacated_next != NULL) {
        task->vacated_next->vacated_prev = task;
    }
    task->sched->vacated = task;
}

void
plus_vacated_forget(struct plus_tasklet *task)
{
    if (!task->vacated) {
        return;
    }
    task->vacated = false;
    *(task->vacated_prev != NULL ? &task->vacated_prev->vacated_next : &task->sched->vacated) =
        task->vacated_next;
    if (task->vacated_next != NULL) {
        task->vacated_next->vacated_prev = task->vacated_prev;
    }
}

struct plus_frames
plus_tasklet_frames(const struct plus_tasklet *task)
{
    struct plus_frames frames = {.uncalled = task->uncalled, .between = task->between};

    if (task->cold != NULL) {
        frames.moved = (struct plus_moved){task->cold->low, task->cold->low + task->cold->bytes,
                                           task->cold->data - task->cold->low};
    }
    frames.top = plus_pystate_frame(&task->fiber.state, &frames.moved);
    return frames;
}

struct plus_frames
plus_tasklet_frames_now(const struct plus_tasklet *task)
{
    if (plus_is_running(task)) {
        return plus_frames_of_thread(task->sched->tstate);
    }
    return (task->alive && task->started && task->sched->tstate != NULL)
               ? plus_tasklet_frames(task)
               : (struct plus_frames){.top = NULL};
}
