#include "policy.h"

enum plus_class
plus_policy_class(const struct plus_policy *policy, uint64_t account_ns)
{
    return account_ns > policy->grace_ns ? PLUS_BATCH : PLUS_INTERACTIVE;
}

/* A release that nobody had asked for is voluntary for certain, so only that halves the account.  A
 * CPU-bound thread never releases unasked and stays where it is; one that went to wait for input
 * recovers within a few rounds. */
uint64_t
plus_policy_account(const struct plus_policy *policy, uint64_t account_ns, uint64_t hold_ns,
                    bool asked)
{
    uint64_t cap = policy->grace_ns * PLUS_ACCOUNT_CAP;
    uint64_t account = account_ns + hold_ns;

    if (account > cap) {
        account = cap;
    }
    return asked ? account : account / 2u;
}

/* Without this a thread that is asked at each of its short holds (because some CPU-bound phase made
 * it batch once, and the others are in a hurry) would never be seen to release unasked again. */
uint64_t
plus_policy_decay(uint64_t account_ns, uint64_t away_ns)
{
    uint64_t decay = away_ns / PLUS_AWAY_DECAY;

    return account_ns > decay ? account_ns - decay : 0;
}

uint64_t
plus_policy_quantum_ns(const struct plus_policy *policy)
{
    return (uint64_t)((double)policy->starvation_ns * policy->batch_share /
                      (1.0 - policy->batch_share));
}

uint64_t
plus_policy_repaid_ns(const struct plus_policy *policy, uint64_t hold_ns)
{
    if (policy->batch_share <= 0.0) {
        return UINT64_MAX;
    }
    double repaid = (double)hold_ns * (1.0 - policy->batch_share) / policy->batch_share;
    return repaid < 1e18 ? (uint64_t)repaid : UINT64_MAX;
}

static uint64_t
held_ns(const struct plus_situation *s)
{
    return s->holder->acquired_ns != 0 && s->now_ns > s->holder->acquired_ns
               ? s->now_ns - s->holder->acquired_ns
               : 0;
}

static struct plus_decision
ask(const struct plus_situation *s, struct plus_decision decision)
{
    uint64_t again_ns = s->interval_ns < PLUS_SAFETY_NS ? s->interval_ns : PLUS_SAFETY_NS;

    decision.deadline_ns = s->now_ns + (s->holder_atomic ? PLUS_SAFETY_NS : again_ns);
    decision.wants = s->holder_atomic;
    decision.ask = !s->holder_atomic && !s->asked;
    decision.asked = !s->holder_atomic && s->asked;
    return decision;
}

/* A holder that gives the GIL up for a microsecond and takes it again, over and over, counts as
 * interactive, and each time it is back before the one that was woken.  After a while of that it is
 * asked: then it has to wait until the other has it. */
static bool
has_missed(const struct plus_situation *s, uint64_t patience_ns)
{
    return s->missed && s->now_ns - s->self->wait_start_ns >= patience_ns;
}

/* Only the first waiter of a class keeps a near timer.  The others' are later by their place, since
 * a crowd that wakes every interval takes the cores from those who work. */
static uint64_t
patience_ns(const struct plus_policy *policy, const struct plus_situation *s)
{
    if (s->self->impatience > 0 && s->self_is_next) {
        uint64_t held = held_ns(s);
        return held < policy->grace_ns ? policy->grace_ns - held : policy->grace_ns;
    }
    uint64_t patience = s->interval_ns * (1u + (uint64_t)s->ahead);
    return patience < PLUS_SAFETY_NS ? patience : PLUS_SAFETY_NS;
}

static struct plus_decision
decide_interactive(const struct plus_policy *policy, const struct plus_situation *s)
{
    struct plus_decision decision = {0};
    enum plus_class holder = plus_policy_class(policy, s->holder->account_ns + held_ns(s));

    if (holder == PLUS_INTERACTIVE) {
        if (has_missed(s, s->interval_ns)) {
            return ask(s, decision);
        }
        decision.holder_is_brief = s->brief_hold_ns < policy->spin_ns;
        decision.deadline_ns = s->now_ns + patience_ns(policy, s);
        return decision;
    }
    if (s->now_ns < s->protected_until_ns) {
        decision.deadline_ns = s->protected_until_ns;
        return decision;
    }
    decision.holder_is_brief = true; /* it is being asked */
    return ask(s, decision);
}

static struct plus_decision
decide_batch(const struct plus_policy *policy, const struct plus_situation *s)
{
    struct plus_decision decision = {.deadline_ns = s->now_ns + PLUS_SAFETY_NS};
    uint64_t held = held_ns(s);
    uint64_t used = s->holder_has_turn ? s->turn_used_ns + held : held;

    if (plus_policy_class(policy, s->holder->account_ns + held) == PLUS_INTERACTIVE) {
        if (has_missed(s, policy->starvation_ns)) {
            return ask(s, decision);
        }
        decision.holder_is_brief = s->self_is_first && s->brief_hold_ns < policy->spin_ns;
        if (s->self_is_next) {
            decision.deadline_ns = s->now_ns + s->slice_ns;
        }
        return decision;
    }
    if (!s->self_is_next) {
        return decision;
    }
    if (used < s->slice_ns) {
        decision.deadline_ns = s->now_ns + (s->slice_ns - used);
        return decision;
    }
    if (s->now_ns < s->protected_until_ns) {
        decision.deadline_ns = s->protected_until_ns;
        return decision;
    }
    return ask(s, decision);
}

struct plus_decision
plus_policy_decide(const struct plus_policy *policy, const struct plus_situation *situation)
{
    if (situation->holder == NULL) {
        /* Free, and granted to somebody who is on the way: the next release or acquisition tells. */
        return (struct plus_decision){
            .deadline_ns = situation->now_ns + situation->interval_ns,
            .holder_is_brief = true,
        };
    }
    return situation->self->queued_as == PLUS_INTERACTIVE ? decide_interactive(policy, situation)
                                                          : decide_batch(policy, situation);
}
