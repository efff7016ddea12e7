/* Tickets, turns and debts of those who wait; the queues themselves are queue.c's.
 *
 * A ticket is the place in a level, and lasts for a turn.  It is taken with the first wait or acquisition of a turn,
 * kept over interruptions and short absences, and given back when the slice is used up, after an absence as long as a
 * slice, or, by those who rest (levels 0 and 1, last hold ended unasked), with each new wait.
 *
 * A debt counts the time for which somebody is overtaken: `to_heavier` by anybody lighter, `to_handlers` (level 1) by
 * level 0.  It runs from when the situation begins to when it ends, so it is brought up to date whenever the holder or
 * the queue changes (plus_ready_count), and is paid back: `to_heavier` by holds that overtake nobody, at the rate that
 * batch_share asks for, `to_handlers` by holds of handlers, one to one.  When enough is owed, the next grant goes to
 * one of them, and it may not be asked for as long as it takes.  Handlers come before heavier ones, among which the
 * longest waiter is chosen, whatever its level.  A debt has a limit: a long drought is no long flood.
 */
#include "ready.h"

#include <stddef.h>

/* What is owed is limited to so many bounds: a long drought is no long flood. */
#define OWED_TO_HEAVIER 8u
#define OWED_TO_HANDLERS 2u

void
plus_ready_insert(struct plus_ready *ready, struct plus_thread *thread)
{
    if (thread->ticket == 0) {
        thread->ticket = ++ready->next_ticket;
    }
    plus_queue_insert(&ready->levels[thread->level], thread);
    ready->occupied |= 1u << thread->level;
}

void
plus_ready_remove(struct plus_ready *ready, struct plus_thread *thread)
{
    struct plus_queue *queue = &ready->levels[thread->level];

    plus_queue_remove(queue, thread);
    if (queue->head == NULL) {
        ready->occupied &= ~(1u << thread->level);
    }
}

struct plus_thread *
plus_ready_first(const struct plus_ready *ready)
{
    return ready->occupied == 0 ? NULL : ready->levels[__builtin_ctz(ready->occupied)].head;
}

struct plus_thread *
plus_ready_last(const struct plus_ready *ready)
{
    return ready->occupied == 0 ? NULL : ready->levels[31 - __builtin_clz(ready->occupied)].tail;
}

static bool
overtakes_heavier(const struct plus_ready *ready, unsigned level)
{
    return ready->occupied >> level > 1u;
}

static bool
overtakes_handlers(const struct plus_ready *ready, unsigned level)
{
    return level == 0 && ready->levels[1].head != NULL;
}

static void
count(struct plus_debt *debt, uint64_t now, uint64_t limit_ns, bool overtakes)
{
    if (debt->since_ns != 0 && now > debt->since_ns) {
        debt->owed_ns += now - debt->since_ns;
        debt->since_ns = now;
    }
    if (debt->owed_ns > limit_ns) {
        debt->owed_ns = limit_ns;
    }
    if (!overtakes) {
        debt->since_ns = 0;
    }
    else if (debt->since_ns == 0) {
        debt->since_ns = now;
    }
}

static void
pay(struct plus_debt *debt, uint64_t paid_ns)
{
    debt->owed_ns = debt->owed_ns > paid_ns ? debt->owed_ns - paid_ns : 0;
}

void
plus_ready_count(struct plus_ready *ready, uint64_t now, unsigned level)
{
    count(&ready->to_heavier, now, OWED_TO_HEAVIER * PLUS_STARVATION_NS,
          overtakes_heavier(ready, level));
    count(&ready->to_handlers, now, OWED_TO_HANDLERS * PLUS_OVERTAKEN_NS,
          overtakes_handlers(ready, level));
}

void
plus_ready_held(struct plus_ready *ready, const struct plus_policy *policy, uint64_t now,
                unsigned level, uint64_t hold_ns)
{
    plus_ready_count(ready, now, level);
    if (!overtakes_heavier(ready, level)) {
        pay(&ready->to_heavier, plus_policy_repaid_ns(policy, hold_ns));
    }
    if (level == 1u) {
        pay(&ready->to_handlers, hold_ns);
    }
}

struct plus_thread *
plus_ready_pick(const struct plus_ready *ready, const struct plus_policy *policy,
                enum plus_protection *protection)
{
    struct plus_thread *first = plus_ready_first(ready);

    *protection = PLUS_UNPROTECTED;
    if (first == NULL) {
        return NULL;
    }
    if (overtakes_handlers(ready, first->level) &&
        ready->to_handlers.owed_ns >= PLUS_OVERTAKEN_NS) {
        *protection = PLUS_FOR_HANDLERS;
        return ready->levels[1].head;
    }
    if (policy->batch_share <= 0.0 || ready->to_heavier.owed_ns < PLUS_STARVATION_NS) {
        return first;
    }
    *protection = PLUS_FOR_HEAVIER;
    if (!overtakes_heavier(ready, first->level)) {
        return first; /* protected: who was asked for it may be back at once */
    }
    struct plus_thread *longest = NULL;
    for (unsigned level = first->level + 1u; level < PLUS_LEVELS; level++) {
        struct plus_thread *head = ready->levels[level].head;
        if (head != NULL && (longest == NULL || head->wait_start_ns < longest->wait_start_ns)) {
            longest = head;
        }
    }
    return longest;
}

uint64_t
plus_ready_protected_ns(const struct plus_policy *policy, enum plus_protection protection)
{
    return protection == PLUS_FOR_HEAVIER    ? plus_policy_quantum_ns(policy)
           : protection == PLUS_FOR_HANDLERS ? PLUS_OVERTAKEN_NS
                                             : 0;
}

/* To the end of its queue next time. */
static void
forget_turn(struct plus_thread *thread)
{
    thread->turn_used_ns = 0;
    thread->ticket = 0;
}

void
plus_ready_begin_wait(struct plus_thread *thread)
{
    if (thread->level <= 1u && !thread->usage.asked) {
        forget_turn(thread);
    }
}

void
plus_ready_begin_turn(struct plus_ready *ready, struct plus_thread *thread)
{
    if (thread->ticket == 0) {
        thread->ticket = ++ready->next_ticket;
    }
}

void
plus_ready_end_turn(struct plus_thread *thread, uint64_t hold_ns, uint64_t slice_ns)
{
    thread->turn_used_ns += hold_ns;
    if (thread->turn_used_ns >= slice_ns) {
        forget_turn(thread);
    }
}

void
plus_ready_away(struct plus_thread *thread, uint64_t away_ns, uint64_t slice_ns)
{
    if (away_ns >= slice_ns) {
        forget_turn(thread);
    }
}
