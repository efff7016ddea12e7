/* A heap of four children a node: half as deep as a binary one, and the four lie in one or two cache lines. */
#include "timers.h"
#include "tasklet.h"

#include <stdlib.h>

#define CHILDREN 4u

static void
put(struct plus_timers *timers, uint32_t at, struct plus_tasklet *task)
{
    timers->heap[at] = task;
    task->timer = at + 1;
}

static bool
is_earlier(const struct plus_tasklet *a, const struct plus_tasklet *b)
{
    return a->deadline_ns < b->deadline_ns;
}

static void
move_up(struct plus_timers *timers, uint32_t at, struct plus_tasklet *task)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / CHILDREN;

        if (!is_earlier(task, timers->heap[parent])) {
            break;
        }
        put(timers, at, timers->heap[parent]);
        at = parent;
    }
    put(timers, at, task);
}

static void
move_down(struct plus_timers *timers, uint32_t at, struct plus_tasklet *task)
{
    for (;;) {
        uint32_t first = at * CHILDREN + 1, least = first;

        if (first >= timers->count) {
            break;
        }
        for (uint32_t i = first + 1; i < first + CHILDREN && i < timers->count; i++) {
            if (is_earlier(timers->heap[i], timers->heap[least])) {
                least = i;
            }
        }
        if (!is_earlier(timers->heap[least], task)) {
            break;
        }
        put(timers, at, timers->heap[least]);
        at = least;
    }
    put(timers, at, task);
}

bool
plus_timers_reserve(struct plus_timers *timers)
{
    if (timers->count < timers->room) {
        return true;
    }
    uint32_t room = timers->room * 2 + 16;
    struct plus_tasklet **more = realloc(timers->heap, room * sizeof(*more));

    if (more == NULL) {
        return false;
    }
    timers->heap = more;
    timers->room = room;
    return true;
}

void
plus_timers_add(struct plus_timers *timers, struct plus_tasklet *task, uint64_t deadline_ns)
{
    task->deadline_ns = deadline_ns;
    move_up(timers, timers->count++, task);
}

void
plus_timers_remove(struct plus_timers *timers, struct plus_tasklet *task)
{
    uint32_t at = task->timer - 1;
    struct plus_tasklet *last = timers->heap[--timers->count];

    task->timer = 0;
    if (last == task) {
        return;
    }
    if (at > 0 && is_earlier(last, timers->heap[(at - 1) / CHILDREN])) {
        move_up(timers, at, last);
    }
    else {
        move_down(timers, at, last);
    }
}

uint64_t
plus_timers_earliest(const struct plus_timers *timers)
{
    return timers->count > 0 ? timers->heap[0]->deadline_ns : PLUS_NO_DEADLINE;
}

void
plus_timers_free(struct plus_timers *timers)
{
    for (uint32_t i = 0; i < timers->count; i++) {
        timers->heap[i]->timer = 0;
    }
    free(timers->heap);
    *timers = (struct plus_timers){0};
}
