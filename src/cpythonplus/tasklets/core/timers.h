/* Deadlines: a heap, the earliest first.
 *
 * Called with the GIL held, or under any lock of the owner.  Nothing here knows how anything waits; see parking.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PLUS_NO_DEADLINE UINT64_MAX

/* Embedded in the object that waits. */
struct plus_timer {
    uint64_t deadline_ns;
    uint32_t place; /* in the heap, from 1; 0: in none */
};

struct plus_timers {
    struct plus_timer **heap;
    uint32_t count, room;
};

/* Makes room for one more.  Returns false without memory. */
bool
plus_timers_reserve(struct plus_timers *timers);

/* Adds a timer that is in no heap; plus_timers_reserve() must have been called. */
void
plus_timers_add(struct plus_timers *timers, struct plus_timer *timer, uint64_t deadline_ns);

/* Removes a timer that is in the heap. */
void
plus_timers_remove(struct plus_timers *timers, struct plus_timer *timer);

/* The earliest deadline; PLUS_NO_DEADLINE: there is none. */
uint64_t
plus_timers_earliest(const struct plus_timers *timers);

void
plus_timers_free(struct plus_timers *timers);
