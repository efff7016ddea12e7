/* The waiters for the GIL: one queue for each level, and the debts to waiters that are overtaken.
 *
 *      level 0   head -> thread -> thread
 *      level 1   head -> thread
 *      level 8   head -> thread -> thread -> thread
 *
 * Each level is first come, first served; a thread that was interrupted in its turn comes back to its old place.
 * Each step takes constant time, whatever the number of waiters.  All functions are called under the GIL's mutex.
 * Nothing here blocks, allocates or knows of Python.
 */
#pragma once

#include "policy.h"
#include "queue.h"

/* The time for which waiters were overtaken, less the time that paid it back. */
struct plus_debt {
    uint64_t owed_ns;
    uint64_t since_ns; /* 0: nobody is overtaken now */
};

struct plus_ready {
    struct plus_queue levels[PLUS_LEVELS];
    uint32_t occupied; /* bit n: level n has a waiter */
    uint64_t next_ticket;
    struct plus_debt to_heavier;  /* to any waiter, by lighter threads */
    struct plus_debt to_handlers; /* to level 1, by level 0 */
};

/* thread->level must be set. */
void
plus_ready_insert(struct plus_ready *ready, struct plus_thread *thread);

void
plus_ready_remove(struct plus_ready *ready, struct plus_thread *thread);

/* The first and the last waiter in the whole order; NULL if nobody waits. */
struct plus_thread *
plus_ready_first(const struct plus_ready *ready);
struct plus_thread *
plus_ready_last(const struct plus_ready *ready);

/* Counts the debts up to `now`.  `level` is that of the thread that has the GIL or is about to get it; it decides
 * whether anybody is overtaken from now on. */
void
plus_ready_count(struct plus_ready *ready, uint64_t now, unsigned level);

/* Called after a thread of `level` has held the GIL for hold_ns until now.  The hold pays the debts back, unless
 * it overtook a waiter. */
void
plus_ready_held(struct plus_ready *ready, const struct plus_policy *policy, uint64_t now,
                unsigned level, uint64_t hold_ns);

/* Whether the next run is protected from requests, and for which debt. */
enum plus_protection {
    PLUS_UNPROTECTED,
    PLUS_FOR_HANDLERS,
    PLUS_FOR_HEAVIER,
};

/* The waiter to serve next: the first, or an overtaken one if enough is owed. */
struct plus_thread *
plus_ready_pick(const struct plus_ready *ready, const struct plus_policy *policy,
                enum plus_protection *protection);

/* How long a run with this protection may not be interrupted. */
uint64_t
plus_ready_protected_ns(const struct plus_policy *policy, enum plus_protection protection);

/* Called when a thread begins to wait, with its level set.  For a thread that rests each wait is a new turn, so
 * such threads are served first come, first served. */
void
plus_ready_begin_wait(struct plus_thread *thread);

/* Called when a thread takes the GIL; without a ticket it begins a new turn. */
void
plus_ready_begin_turn(struct plus_ready *ready, struct plus_thread *thread);

/* Called when a hold ends; the turn ends with it if the slice is used up. */
void
plus_ready_end_turn(struct plus_thread *thread, uint64_t hold_ns, uint64_t slice_ns);

/* Called after an absence; the turn is over if the absence was as long as a slice. */
void
plus_ready_away(struct plus_thread *thread, uint64_t away_ns, uint64_t slice_ns);
