/* A heap with four children per node: half as deep as a binary one, and the four lie in one or two cache lines.
 *
 *   - heap[0] is the earliest.  No timer is earlier than its parent; of equal ones any may come first.
 *   - A timer is embedded in the tasklet that waits, and stores its place + 1.  So it can be removed from anywhere, in
 *     as many steps as the heap is deep, and a wait that ends in another way leaves nothing behind.
 *   - The heap has pointers only.  The wait queue keeps the tasklet alive.
 *   - Adding cannot fail: plus_timers_reserve() makes room before the wait begins.  No other code may add between the
 *     two calls, so no Python code may run between them.
 *   - The heap's memory is freed only as a whole.
 *
 * Rejected: a wheel, whose ticks cost while nothing is due.  Rejected: marking cancelled timers and dropping them when
 * their time comes; time-outs of a minute that are hardly ever used would fill the heap.
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
