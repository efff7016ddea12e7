/* A heap of four children a node: half as deep as a binary one, and the four lie in one or two cache lines.
 *
 *   - heap[0] is the earliest.  No timer is earlier than its parent; of equal ones any may come first.
 *   - A timer is a part of what waits, and knows its place + 1.  So it is taken out from wherever it is, in as many
 *     steps as the heap is deep, and a wait that ends in another way leaves nothing behind.
 *   - The heap has pointers only.  Who waits is kept alive by the wait queue that it stands in.
 *   - Adding cannot fail: plus_timers_reserve() makes room before anything of the wait is begun.  Nobody else may add
 *     between the two calls, so nothing that runs Python code stands there.
 *   - Room is never given back but as a whole.
 *
 * Rejected: a wheel, whose ticks cost while nothing is due.  Rejected: to mark cancelled ones and drop them when their
 * time comes.  Time-outs of a minute that are nearly never used would be all of the heap.
 */
#include "timers.h"

#include <stdlib.h>

#define CHILDREN 4u

static void
put(struct plus_timers *timers, uint32_t at, struct plus_timer *timer)
{
    timers->heap[at] = timer;
    timer->place = at + 1;
}

static bool
is_earlier(const struct plus_timer *a, const struct plus_timer *b)
{
    return a->deadline_ns < b->deadline_ns;
}

static void
move_up(struct plus_timers *timers, uint32_t at, struct plus_timer *timer)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / CHILDREN;

        if (!is_earlier(timer, timers->heap[parent])) {
            break;
        }
        put(timers, at, timers->heap[parent]);
        at = parent;
    }
    put(timers, at, timer);
}

static void
move_down(struct plus_timers *timers, uint32_t at, struct plus_timer *timer)
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
        if (!is_earlier(timers->heap[least], timer)) {
            break;
        }
        put(timers, at, timers->heap[least]);
        at = least;
    }
    put(timers, at, timer);
}

bool
plus_timers_reserve(struct plus_timers *timers)
{
    if (timers->count < timers->room) {
        return true;
    }
    uint32_t room = timers->room * 2 + 16;
    struct plus_timer **more = realloc(timers->heap, room * sizeof(*more));

    if (more == NULL) {
        return false;
    }
    timers->heap = more;
    timers->room = room;
    return true;
}

void
plus_timers_add(struct plus_timers *timers, struct plus_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
    move_up(timers, timers->count++, timer);
}

void
plus_timers_remove(struct plus_timers *timers, struct plus_timer *timer)
{
    uint32_t at = timer->place - 1;
    struct plus_timer *last = timers->heap[--timers->count];

    timer->place = 0;
    if (last == timer) {
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
        timers->heap[i]->place = 0;
    }
    free(timers->heap);
    *timers = (struct plus_timers){0};
}
