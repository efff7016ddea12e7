/* Dead lines of a thread's waiting tasklets: a heap, the earliest first.
 *
 * All with the GIL held.  Knows nothing of how they wait; see parking.h.
 */
#ifndef PLUS_TASKLETS_TIMERS_H
#define PLUS_TASKLETS_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct plus_tasklet;

#define PLUS_NO_DEADLINE UINT64_MAX

struct plus_timers {
    struct plus_tasklet **heap; /* borrowed: each is in a queue, which has a reference */
    uint32_t count, room;
};

/* Makes room for one more.  False: no memory. */
bool
plus_timers_reserve(struct plus_timers *timers);

/* After a reserve; the tasklet has no timer. */
void
plus_timers_add(struct plus_timers *timers, struct plus_tasklet *task, uint64_t deadline_ns);

/* The tasklet has a timer. */
void
plus_timers_remove(struct plus_timers *timers, struct plus_tasklet *task);

/* PLUS_NO_DEADLINE: there is none. */
uint64_t
plus_timers_earliest(const struct plus_timers *timers);

void
plus_timers_free(struct plus_timers *timers);

#endif
