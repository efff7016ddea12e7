/* The arithmetic of the policy; policy.h explains the idea and what was rejected.
 *
 * Three events change a thread's usage:
 *
 *     held     The account grows by hold_ns less the credit, up to the cap.  Holds that ended unasked move the average
 *              brief_ns.
 *     away     Account and credit shrink by away_ns, or by a quarter of it if the last hold ended because it was asked.
 *     waited   The thread gets credit by its demand: the whole wait at a demand of one half, nothing at 0 or at three
 *              quarters and more.  The credit first reduces the account; the remainder is kept.
 *
 * When account and credit have both reached 0 the thread has rested.  Then the account's peak (peak_ns) becomes its
 * typical usage (usual_ns), which otherwise fades by an eighth.  A thread whose account was at the cap is CPU-bound and
 * loses its typical usage.
 *
 * A waiter decides by comparing levels.  If it is lighter than the holder, it asks at once, unless a protected run is
 * on.  If it is heavier, it waits until it has missed the GIL for as long as it may be kept waiting, or until the
 * holder has held the GIL for so long.  Threads of equal level take turns by their tickets; those of level 0 leave each
 * other alone until one misses the GIL for an interval.  A decision changes nothing: sched.c acts on it.
 */
#include "policy.h"

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the account after a hold of hold_ns. */
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
    /* Up to twice the typical usage counts as typical: requests differ, and arrive in bursts. */
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

/* Halves the recent past once it is longer than PLUS_MEMORY_NS. */
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
        /* Unasked, the hold would have lasted longer. */
        usage->brief_ns += (hold_ns + 7u) / 8u + usage->brief_ns / 8u;
    }
}

/* The peak before a rest becomes the typical usage.  A CPU-bound thread starts again without a typical usage. */
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

/* Returns the part of its time, not counting waits, for which a thread wants the GIL. */
static double
demand(const struct plus_usage *usage)
{
    double holding = (double)usage->holding_ns;

    return holding / (holding + (double)usage->resting_ns + (double)PLUS_UNKNOWN_NS);
}

/* Requests pile up while a handler is kept waiting.  If they counted against the handler, one long wait would make
 * it a CPU-bound thread for as long as it catches up, which beside many CPU-bound threads is for ever.  So it gets
 * back as much as piles up, and as much again for catching up.  A thread that wants the GIL for three quarters of
 * its time or more, or that has never given it up by itself, gets nothing. */
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

/* A holder that gives the GIL up for a microsecond and takes it again, over and over, looks brief, and is back
 * before the woken thread each time.  After patience_ns of that the waiter asks; then the holder has to wait until
 * the waiter has the GIL. */
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
    /* A holder that goes on for long leaves the heavier threads their share, even if its level is low because
     * of its typical usage or of a loan. */
    if (has_missed(s, PLUS_STARVATION_NS) ||
        (held >= PLUS_STARVATION_NS && policy->batch_share > 0.0)) {
        return ask(s);
    }
    return wait_until(s, UINT64_MAX, s->self_is_first && is_brief(policy, s->holder));
}

/* Tickets are the order of turns.  A thread that was interrupted in its turn, or was away for a moment, has the
 * older ticket and uses up what is left of its turn. */
static struct plus_decision
decide_equal(const struct plus_policy *policy, const struct plus_situation *s, uint64_t held)
{
    uint64_t used = s->holder->turn_used_ns + held;
    uint64_t slice = plus_policy_slice_ns(s->self->level, s->slice_ns, s->interval_ns);

    if (s->self->level == 0) {
        /* Both are light: the holder will block by itself soon. */
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
        /* The GIL is free, and the granted thread is on its way: the next release or acquisition wakes us. */
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
