/* Tickets, turns and debts of the waiters; queue.c implements the queues themselves.
 *
 * A ticket is a place in a level and lasts for one turn.  A thread takes it with the first wait or acquisition of the
 * turn and keeps it over interruptions and short absences.  It gives the ticket back when the slice is used up, after
 * an absence as long as a slice, or with each new wait if it rests (levels 0 and 1, last hold ended unasked).
 *
 * A debt counts the time for which waiters are overtaken: `to_heavier` by any lighter thread, `to_handlers` (level 1)
 * by level 0.  plus_ready_count updates it whenever the holder or the queue changes.  It is paid back: `to_heavier` by
 * holds that overtake nobody, at the rate that batch_share asks for, `to_handlers` by holds of handlers, one to one.
 * When enough is owed, the next grant goes to an overtaken waiter, and its run is protected from requests for
 * plus_ready_protected_ns().  Handlers come before heavier threads, among which the one that has waited longest is
 * chosen, whatever its level.
 */
#include "ready.h"

#include <stddef.h>

/* Limits of a debt, in units of its bound: threads that waited for long must not run for as long afterwards. */
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
        return first; /* protected, since a thread that was asked for it may be back at once */
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

/* The next wait goes to the end of the queue. */
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
