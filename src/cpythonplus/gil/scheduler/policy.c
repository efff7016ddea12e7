/* The numbers behind policy.h, which tells the idea and what was rejected.
 *
 * An account moves at three events, of the thread that it belongs to:
 *
 *     held     + hold_ns, less what credit there is, up to the cap; the average of unasked holds (brief_ns) follows
 *     away     - away_ns, a quarter of it when the last hold ended because it was asked; credit likewise
 *     waited   credit by demand: all of the wait for who wants half of its time, nothing for who wants none of it, or
 *              three quarters and more; the account is paid with it first, the rest is kept
 *
 * When account and credit have both come to 0 the thread has rested: the most that the account came to (peak_ns)
 * becomes what it usually comes to (usual_ns), which otherwise fades by an eighth.  One that was at the cap has no
 * usual any more: it was a job.
 *
 * A waiter decides by comparing levels: lighter than the holder asks at once, unless a protected run is on; heavier
 * waits, until it has missed the GIL for as long as it may be kept waiting, or the holder holds it so long; equal ones
 * take turns by their tickets. Those of level 0 leave each other alone, until one misses the GIL for an interval.  A
 * decision changes nothing: sched.c acts on it.
 */
#include "policy.h"

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The account after a hold. */
static uint64_t
charged_ns(const struct plus_usage *usage, uint64_t hold_ns)
{
    uint64_t free_ns = least(usage->credit_ns, hold_ns);

    return least(usage->account_ns + (hold_ns - free_ns), PLUS_ACCOUNT_CAP_NS);
}

unsigned
plus_policy_level(const struct plus_usage *usage, uint64_t held_ns)
{
    uint64_t account = charged_ns(usage, held_ns);
    bool is_known = usage->usual_ns != 0;

    if (account <= PLUS_LIGHT_NS && usage->usual_ns <= PLUS_LIGHT_NS) {
        return 0;
    }
    /* Twice the usual is as usual: requests differ, and come together. */
    if (is_known && account < PLUS_ACCOUNT_CAP_NS &&
        (account <= PLUS_BEGINNING_NS || account <= 2u * usage->usual_ns)) {
        return 1;
    }
    if (account <= PLUS_BEGINNING_NS) {
        return 2;
    }
    unsigned level = 3;
    for (uint64_t limit = 2u * PLUS_BEGINNING_NS; account > limit && limit <= PLUS_HEAVY_NS;
         limit *= 2u) {
        level++;
    }
    return level;
}

uint64_t
plus_policy_slice_ns(unsigned level, uint64_t slice_ns, uint64_t interval_ns)
{
    return level <= 1u && interval_ns < slice_ns ? interval_ns : slice_ns;
}

enum plus_class
plus_policy_class(unsigned level)
{
    return level > 2u ? PLUS_BATCH : PLUS_INTERACTIVE;
}

/* The recent past fades by halves. */
static void
fade(struct plus_usage *usage)
{
    if (usage->holding_ns + usage->resting_ns > PLUS_MEMORY_NS) {
        usage->holding_ns /= 2u;
        usage->resting_ns /= 2u;
    }
}

void
plus_policy_held(struct plus_usage *usage, uint64_t hold_ns, bool asked)
{
    usage->account_ns = charged_ns(usage, hold_ns);
    usage->credit_ns -= least(usage->credit_ns, hold_ns);
    if (usage->account_ns > usage->peak_ns) {
        usage->peak_ns = usage->account_ns;
    }
    usage->holding_ns += least(hold_ns, PLUS_MEMORY_NS);
    fade(usage);
    usage->asked = asked;
    if (!asked) {
        usage->brief_ns += (hold_ns + 7u) / 8u - usage->brief_ns / 8u;
    }
    else if (usage->brief_ns != 0 && usage->brief_ns < PLUS_MEMORY_NS) {
        /* It would have gone on for some time. */
        usage->brief_ns += (hold_ns + 7u) / 8u + usage->brief_ns / 8u;
    }
}

/* What it did before it rested is what it usually does.  Whoever ran as a job has to show a usual
 * again. */
static void
rested(struct plus_usage *usage)
{
    uint64_t faded = usage->usual_ns - usage->usual_ns / 8u;

    usage->usual_ns = usage->peak_ns >= PLUS_ACCOUNT_CAP_NS ? 0
                      : usage->peak_ns > faded              ? usage->peak_ns
                                                            : faded;
    usage->peak_ns = 0;
}

void
plus_policy_away(struct plus_usage *usage, uint64_t away_ns)
{
    uint64_t rest = usage->asked ? away_ns / PLUS_ASKED_AWAY : away_ns;

    usage->resting_ns += least(rest, PLUS_MEMORY_NS);
    fade(usage);
    usage->account_ns -= least(usage->account_ns, rest);
    usage->credit_ns -= least(usage->credit_ns, rest);
    if (usage->account_ns == 0 && usage->credit_ns == 0) {
        rested(usage);
    }
}

/* The part of its time, waits left out, that a thread wants the GIL. */
static double
demand(const struct plus_usage *usage)
{
    double holding = (double)usage->holding_ns;

    return holding / (holding + (double)usage->resting_ns + (double)PLUS_UNKNOWN_NS);
}

/* Requests come together while a handler is kept waiting.  Were they held against it, one long wait
 * would make a job of it for as long as it catches up, which beside many jobs is for ever.  As much
 * as comes together is given back, and as much again for catching up; nothing to a thread that wants
 * the GIL for three quarters of its time or more, or that has never given it up by itself. */
void
plus_policy_waited(struct plus_usage *usage, uint64_t waited_ns)
{
    double wanted = demand(usage);
    double part = wanted <= 0.5 ? 2.0 * wanted : 4.0 * (0.75 - wanted);

    if (usage->brief_ns == 0 || part <= 0.0) {
        return;
    }
    uint64_t credit_ns = (uint64_t)(part * (double)least(waited_ns, PLUS_MEMORY_NS));
    uint64_t paid_ns = least(usage->account_ns, credit_ns);
    usage->account_ns -= paid_ns;
    usage->credit_ns = least(usage->credit_ns + credit_ns - paid_ns, PLUS_CREDIT_NS);
}

uint64_t
plus_policy_quantum_ns(const struct plus_policy *policy)
{
    return (uint64_t)((double)PLUS_STARVATION_NS * policy->batch_share /
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
ask(const struct plus_situation *s)
{
    uint64_t again_ns = s->interval_ns < PLUS_SAFETY_NS ? s->interval_ns : PLUS_SAFETY_NS;

    return (struct plus_decision){
        .deadline_ns = s->now_ns + (s->holder_atomic ? PLUS_SAFETY_NS : again_ns),
        .wants = s->holder_atomic,
        .ask = !s->holder_atomic && !s->asked,
        .asked = !s->holder_atomic && s->asked,
        .holder_is_brief = !s->holder_atomic,
    };
}

static struct plus_decision
wait_until(const struct plus_situation *s, uint64_t deadline_ns, bool brief)
{
    uint64_t tick_ns =
        s->now_ns + (s->interval_ns < PLUS_SAFETY_NS ? s->interval_ns : PLUS_SAFETY_NS);

    return (struct plus_decision){
        .deadline_ns = deadline_ns < tick_ns ? deadline_ns : tick_ns,
        .holder_is_brief = brief,
    };
}

/* A holder that gives the GIL up for a microsecond and takes it again, over and over, looks brief, and
 * each time it is back before the one that was woken.  After a while of that it is asked: then it has
 * to wait until the other has it. */
static bool
has_missed(const struct plus_situation *s, uint64_t patience_ns)
{
    return s->self->missed && s->now_ns - s->self->wait_start_ns >= patience_ns;
}

static struct plus_decision
decide_lighter(const struct plus_policy *policy, const struct plus_situation *s, uint64_t held)
{
    uint64_t brief_ns = s->holder->usage.brief_ns;

    if (s->now_ns < s->protected_until_ns) {
        return wait_until(s, s->protected_until_ns, false);
    }
    struct plus_decision decision = ask(s);
    decision.holder_is_chatty =
        brief_ns > 0 && brief_ns + held < policy->spin_ns && !s->self->missed;
    return decision;
}

static bool
is_brief(const struct plus_policy *policy, const struct plus_thread *holder)
{
    return holder->usage.brief_ns < policy->spin_ns;
}

static struct plus_decision
decide_heavier(const struct plus_policy *policy, const struct plus_situation *s, uint64_t held)
{
    /* Also one that goes on for long, by what it usually does or by what is lent to it, leaves the others
     * their share. */
    if (has_missed(s, PLUS_STARVATION_NS) ||
        (held >= PLUS_STARVATION_NS && policy->batch_share > 0.0)) {
        return ask(s);
    }
    return wait_until(s, UINT64_MAX, s->self_is_first && is_brief(policy, s->holder));
}

/* Tickets are the order of turns: whoever was interrupted in its own, or was away for a moment, has the
 * older one, and goes on with what is left of it. */
static struct plus_decision
decide_equal(const struct plus_policy *policy, const struct plus_situation *s, uint64_t held)
{
    uint64_t used = s->holder->turn_used_ns + held;
    uint64_t slice = plus_policy_slice_ns(s->self->level, s->slice_ns, s->interval_ns);

    if (s->self->level == 0) {
        /* Both are light: it will block by itself soon. */
        if (has_missed(s, s->interval_ns)) {
            return ask(s);
        }
        uint64_t patience = s->self->impatience == 0 ? s->interval_ns
                            : held < PLUS_LIGHT_NS   ? PLUS_LIGHT_NS - held
                                                     : PLUS_LIGHT_NS;
        return wait_until(s, s->now_ns + patience, is_brief(policy, s->holder));
    }
    bool own_turn = s->self->ticket < s->holder->ticket;
    if (used < slice && !own_turn) {
        return wait_until(s, s->now_ns + (slice - used), false);
    }
    if (s->now_ns < s->protected_until_ns) {
        return wait_until(s, s->protected_until_ns, false);
    }
    return ask(s);
}

struct plus_decision
plus_policy_decide(const struct plus_policy *policy, const struct plus_situation *s)
{
    if (s->holder == NULL) {
        /* Free, and granted to somebody who is on the way: the next release or acquisition tells. */
        return wait_until(s, UINT64_MAX, true);
    }
    if (policy->eager) {
        return ask(s);
    }
    uint64_t held = held_ns(s);

    if (s->self->level < s->holder_level) {
        return decide_lighter(policy, s, held);
    }
    return s->self->level > s->holder_level ? decide_heavier(policy, s, held)
                                            : decide_equal(policy, s, held);
}
