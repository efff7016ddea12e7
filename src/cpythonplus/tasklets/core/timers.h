/* Dead lines: a heap, the earliest first.
 *
 * All with the GIL held, or under whatever lock the owner has.  Knows nothing of who waits, or how; see parking.h.
 */
#ifndef PLUS_TASKLETS_TIMERS_H
#define PLUS_TASKLETS_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#define PLUS_NO_DEADLINE UINT64_MAX

/* Part of what waits. */
struct plus_timer {
    uint64_t deadline_ns;
    uint32_t place; /* in the heap, from 1; 0: in none */
};

struct plus_timers {
    struct plus_timer **heap;
    uint32_t count, room;
};

/* Makes room for one more.  False: no memory. */
bool
plus_timers_reserve(struct plus_timers *timers);

/* After a reserve; the timer is in no heap. */
void
plus_timers_add(struct plus_timers *timers, struct plus_timer *timer, uint64_t deadline_ns);

/* It is in the heap. */
void
plus_timers_remove(struct plus_timers *timers, struct plus_timer *timer);

/* PLUS_NO_DEADLINE: there is none. */
uint64_t
plus_timers_earliest(const struct plus_timers *timers);

void
plus_timers_free(struct plus_timers *timers);

#endif
