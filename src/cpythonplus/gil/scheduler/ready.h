/* Who waits for the GIL: one queue for each level, and what is owed to those who are overtaken.
 *
 *      level 0   head -> thread -> thread
 *      level 1   head -> thread
 *      level 8   head -> thread -> thread -> thread
 *
 * Inside a level first come, first served; whoever was interrupted in its turn comes back to its old
 * place.  Each step is constant time, whatever the number of waiters.  All functions are called under
 * the GIL's mutex.  Nothing here blocks, allocates or knows of Python.
 */
#ifndef PLUS_GIL_READY_H
#define PLUS_GIL_READY_H

#include "policy.h"
#include "queue.h"

/* How long waiters were overtaken, less what they got for it. */
struct plus_debt {
    uint64_t owed_ns;
    uint64_t since_ns; /* 0: nobody is overtaken now */
};

struct plus_ready {
    struct plus_queue levels[PLUS_LEVELS];
    uint32_t occupied; /* bit n: level n has a waiter */
    uint64_t next_ticket;
    struct plus_debt to_heavier;  /* by anybody lighter */
    struct plus_debt to_handlers; /* to level 1, by level 0 */
};

/* thread->level is set. */
void
plus_ready_insert(struct plus_ready *ready, struct plus_thread *thread);

void
plus_ready_remove(struct plus_ready *ready, struct plus_thread *thread);

/* The first in the whole order, and the last; NULL if nobody waits. */
struct plus_thread *
plus_ready_first(const struct plus_ready *ready);
struct plus_thread *
plus_ready_last(const struct plus_ready *ready);

/* Counts up to `now`, and from now on whether a thread of `level` that has the GIL, or is about to get
 * it, overtakes somebody. */
void
plus_ready_count(struct plus_ready *ready, uint64_t now, unsigned level);

/* A thread of `level` has held the GIL for hold_ns until now: what was owed is paid back by it, if it
 * overtook nobody. */
void
plus_ready_held(struct plus_ready *ready, const struct plus_policy *policy, uint64_t now,
                unsigned level, uint64_t hold_ns);

/* What a thread that is served may not be interrupted for. */
enum plus_protection {
    PLUS_UNPROTECTED,
    PLUS_FOR_HANDLERS, /* what is owed to them */
    PLUS_FOR_HEAVIER,
};

/* Whom to serve next: the first, or one that is overtaken, since enough is owed. */
struct plus_thread *
plus_ready_pick(const struct plus_ready *ready, const struct plus_policy *policy,
                enum plus_protection *protection);

/* How long it may not be interrupted. */
uint64_t
plus_ready_protected_ns(const struct plus_policy *policy, enum plus_protection protection);

/* A thread begins to wait, with its level set.  Those who rest are served first come, first served: each
 * wait is a new turn. */
void
plus_ready_begin_wait(struct plus_thread *thread);

/* A thread takes the GIL: before those who wait, or in its own turn. */
void
plus_ready_begin_turn(struct plus_ready *ready, struct plus_thread *thread);

/* The part of a turn that ended. */
void
plus_ready_end_turn(struct plus_thread *thread, uint64_t hold_ns, uint64_t slice_ns);

/* The thread was away: for long, and its turn is over. */
void
plus_ready_away(struct plus_thread *thread, uint64_t away_ns, uint64_t slice_ns);

#endif
