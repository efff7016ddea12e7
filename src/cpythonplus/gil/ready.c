#include "ready.h"

#include <stddef.h>

/* What is owed is limited to so many starvation bounds: a long drought is no long flood. */
#define OWED_LIMIT 8u

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
is_overtaken(const struct plus_ready *ready, unsigned level)
{
    return ready->occupied >> level > 1u;
}

static void
count(struct plus_ready *ready, uint64_t now)
{
    if (ready->owed_since_ns != 0 && now > ready->owed_since_ns) {
        ready->owed_ns += now - ready->owed_since_ns;
        ready->owed_since_ns = now;
    }
    if (ready->owed_ns > OWED_LIMIT * PLUS_STARVATION_NS) {
        ready->owed_ns = OWED_LIMIT * PLUS_STARVATION_NS;
    }
}

void
plus_ready_count(struct plus_ready *ready, uint64_t now, unsigned level)
{
    count(ready, now);
    if (!is_overtaken(ready, level)) {
        ready->owed_since_ns = 0;
    }
    else if (ready->owed_since_ns == 0) {
        ready->owed_since_ns = now;
    }
}

void
plus_ready_held(struct plus_ready *ready, const struct plus_policy *policy, uint64_t now,
                unsigned level, uint64_t hold_ns)
{
    if (is_overtaken(ready, level)) {
        count(ready, now);
        return;
    }
    uint64_t repaid = plus_policy_repaid_ns(policy, hold_ns);
    ready->owed_ns = ready->owed_ns > repaid ? ready->owed_ns - repaid : 0;
}

struct plus_thread *
plus_ready_pick(const struct plus_ready *ready, const struct plus_policy *policy, bool *protected)
{
    struct plus_thread *first = plus_ready_first(ready);

    *protected = first != NULL && policy->batch_share > 0.0 && ready->owed_ns >= PLUS_STARVATION_NS;
    if (!*protected || !is_overtaken(ready, first->level)) {
        return first; /* protected or not: who was asked for it may be back at once */
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
