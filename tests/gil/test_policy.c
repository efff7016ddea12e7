/* Each rule of the policy, with numbers that one can check in the head. */
#include "check.h"

#include "gil/scheduler/policy.h"

#include <stdbool.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static const struct plus_policy policy = {
    .slice_ns = 10 * MS,
    .spin_ns = 20 * US,
    .batch_share = 0.05,
};

static struct plus_thread waiter, holder;

/* A waiter of a level, and a holder with an account that holds since `held` ns. */
static struct plus_situation
situation(unsigned level, uint64_t account, uint64_t held)
{
    waiter = (struct plus_thread){.level = level, .ticket = 8, .wait_start_ns = 1000 * MS};
    holder = (struct plus_thread){
        .ticket = 7,
        .usage = {.account_ns = account},
        .acquired_ns = 1000 * MS - held,
    };
    return (struct plus_situation){
        .now_ns = 1000 * MS,
        .interval_ns = 5 * MS,
        .slice_ns = 10 * MS,
        .self = &waiter,
        .self_is_first = true,
        .holder = &holder,
    };
}

static struct plus_decision
decided(const struct plus_situation *s)
{
    struct plus_situation with_level = *s;
    uint64_t held = 0;

    if (holder.acquired_ns != 0 && holder.acquired_ns < s->now_ns) {
        held = s->now_ns - holder.acquired_ns;
    }
    with_level.holder_level = plus_policy_level(&holder.usage, held);
    struct plus_decision decision = plus_policy_decide(&policy, &with_level);

    CHECK(decision.deadline_ns > s->now_ns);
    CHECK(!(decision.ask && decision.wants));
    return decision;
}

static unsigned
level(uint64_t account, uint64_t usual)
{
    struct plus_usage usage = {.account_ns = account, .usual_ns = usual};

    return plus_policy_level(&usage, 0);
}

static void
test_levels(void)
{
    CHECK(level(0, 0) == 0 && level(1 * MS, 0) == 0);
    CHECK(level(1 * MS + 1, 0) == 2 && level(5 * MS, 0) == 2);
    CHECK(level(5 * MS + 1, 0) == 3 && level(10 * MS, 0) == 3);
    CHECK(level(10 * MS + 1, 0) == 4 && level(160 * MS, 0) == 7);
    CHECK(level(160 * MS + 1, 0) == 8 && level(PLUS_ACCOUNT_CAP_NS, 0) == PLUS_LEVELS - 1u);
    /* Twice the usual is as usual; a thread at the cap never is. */
    CHECK(level(100 * MS, 50 * MS) == 1 && level(100 * MS + 1, 50 * MS) == 7);
    CHECK(level(5 * MS, 1 * US) == 1 && level(5 * MS + 1, 1 * US) == 3);
    CHECK(level(PLUS_ACCOUNT_CAP_NS, 300 * MS) == PLUS_LEVELS - 1u);
    /* Whoever usually computes for longer than a moment does not interrupt its like. */
    CHECK(level(0, 1 * MS) == 0 && level(0, 1 * MS + 1) == 1 && level(0, 50 * MS) == 1);
    CHECK(plus_policy_slice_ns(0, 10 * MS, 5 * MS) == 5 * MS);
    CHECK(plus_policy_slice_ns(1, 10 * MS, 5 * MS) == 5 * MS);
    CHECK(plus_policy_slice_ns(1, 10 * MS, 20 * MS) == 10 * MS);
    CHECK(plus_policy_slice_ns(2, 10 * MS, 5 * MS) == 10 * MS);
    /* What the thread holds now counts. */
    struct plus_usage usage = {.account_ns = 4 * MS};
    CHECK(plus_policy_level(&usage, 1 * MS) == 2 && plus_policy_level(&usage, 2 * MS) == 3);
    CHECK(plus_policy_class(2) == PLUS_INTERACTIVE && plus_policy_class(3) == PLUS_BATCH);
}

static void
test_the_account(void)
{
    struct plus_usage usage = {0};

    plus_policy_held(&usage, 30 * MS, false);
    plus_policy_away(&usage, 10 * MS);
    CHECK(usage.account_ns == 20 * MS && usage.usual_ns == 0);
    plus_policy_held(&usage, 5 * MS, false);
    CHECK(usage.account_ns == 25 * MS);
    plus_policy_away(&usage, 25 * MS); /* it has rested: 30 ms is its usual */
    CHECK(usage.account_ns == 0 && usage.usual_ns == 30 * MS);
    /* A lighter round makes the usual fade by an eighth. */
    plus_policy_held(&usage, 1 * MS, false);
    plus_policy_away(&usage, 1000 * MS);
    CHECK(usage.usual_ns == 30 * MS - 30 * MS / 8);
    /* Nothing is saved up by sleeping. */
    plus_policy_held(&usage, 2 * MS, false);
    CHECK(usage.account_ns == 2 * MS);
    /* Capped: a job is not held against a thread for ever; but it has to show its usual again. */
    plus_policy_held(&usage, 5000 * MS, true);
    CHECK(usage.account_ns == PLUS_ACCOUNT_CAP_NS);
    plus_policy_held(&usage, 0, false);
    plus_policy_away(&usage, PLUS_ACCOUNT_CAP_NS);
    CHECK(usage.account_ns == 0 && usage.usual_ns == 0);
    /* Absence after a request counts for little: its core may have been taken away. */
    plus_policy_held(&usage, 10 * MS, true);
    plus_policy_away(&usage, 8 * MS);
    CHECK(usage.account_ns == 8 * MS);
    plus_policy_away(&usage, UINT64_MAX);
    CHECK(usage.account_ns == 0);
}

static void
test_waiting_makes_no_job_of_a_handler(void)
{
    /* It wants 30 % of the GIL. */
    struct plus_usage handler = {
        .account_ns = 100 * MS, .holding_ns = 300 * MS, .resting_ns = 600 * MS, .brief_ns = 1};
    struct plus_usage job = handler, silent = handler;

    plus_policy_waited(&handler, 100 * MS);
    CHECK(handler.account_ns == 40 * MS && handler.credit_ns == 0);
    plus_policy_waited(&handler, 100 * MS);
    CHECK(handler.account_ns == 0 && handler.credit_ns == 20 * MS);
    CHECK(plus_policy_level(&handler, 21 * MS) == 0);
    plus_policy_held(&handler, 15 * MS, false);
    CHECK(handler.account_ns == 0 && handler.credit_ns == 5 * MS);
    plus_policy_held(&handler, 15 * MS, false);
    CHECK(handler.account_ns == 10 * MS && handler.credit_ns == 0);
    for (unsigned i = 0; i < 10; i++) {
        plus_policy_waited(&handler, 100 * MS);
    }
    CHECK(handler.credit_ns == PLUS_CREDIT_NS);
    plus_policy_away(&handler, PLUS_CREDIT_NS / 2);
    CHECK(handler.credit_ns == PLUS_CREDIT_NS / 2 && handler.usual_ns == 0);
    plus_policy_away(&handler, PLUS_CREDIT_NS / 2);
    CHECK(handler.credit_ns == 0 && handler.usual_ns > 0);
    /* One that wants nearly all of it, and one that has never given it up by itself. */
    job.holding_ns = 3 * (job.resting_ns + PLUS_UNKNOWN_NS);
    plus_policy_waited(&job, 100 * MS);
    CHECK(job.account_ns == 100 * MS);
    silent.brief_ns = 0;
    plus_policy_waited(&silent, 100 * MS);
    CHECK(silent.account_ns == 100 * MS);
}

static void
test_demand_is_of_the_recent_past(void)
{
    struct plus_usage usage = {0};

    for (unsigned i = 0; i < 1000; i++) {
        plus_policy_held(&usage, 30 * MS, false);
        plus_policy_away(&usage, 70 * MS);
    }
    CHECK(usage.holding_ns + usage.resting_ns <= PLUS_MEMORY_NS);
    double demand = (double)usage.holding_ns / (double)(usage.holding_ns + usage.resting_ns);
    CHECK(demand > 0.28 && demand < 0.32);
}

static void
test_quantum_and_debt(void)
{
    struct plus_policy half = policy, none = policy;

    half.batch_share = 0.5;
    none.batch_share = 0.0;
    CHECK(plus_policy_quantum_ns(&half) == PLUS_STARVATION_NS);
    CHECK(plus_policy_quantum_ns(&none) == 0);
    CHECK(plus_policy_repaid_ns(&half, 3 * MS) == 3 * MS);
    CHECK(plus_policy_repaid_ns(&none, 1) == UINT64_MAX);
    /* One quantum pays for one starvation time, to a nanosecond's rounding. */
    uint64_t quantum = plus_policy_quantum_ns(&policy);
    CHECK(quantum > 1052 * US && quantum < 1053 * US);
    uint64_t repaid = plus_policy_repaid_ns(&policy, quantum);
    CHECK(repaid <= PLUS_STARVATION_NS && repaid + 100 > PLUS_STARVATION_NS);
    /* No overflow into a small number. */
    CHECK(plus_policy_repaid_ns(&policy, UINT64_MAX / 2) == UINT64_MAX);
}

static void
test_nobody_holds(void)
{
    struct plus_situation s = situation(8, 0, 0);

    s.holder = NULL;
    CHECK(!decided(&s).ask && !decided(&s).wants);
}

static void
test_a_lighter_waiter_asks_at_once(void)
{
    struct plus_situation s = situation(0, 8 * MS, 1);

    CHECK(decided(&s).ask && decided(&s).holder_is_brief);
    /* By this hold alone it became heavier. */
    s = situation(0, 0, 1 * MS + 1);
    CHECK(decided(&s).ask);
    s = situation(7, 320 * MS, 1);
    CHECK(decided(&s).ask);
    /* Once is enough. */
    s.asked = true;
    CHECK(!decided(&s).ask && decided(&s).asked);
}

static void
test_a_chatty_holder_is_polled_out_first(void)
{
    struct plus_situation s = situation(0, 320 * MS, 5 * US);

    CHECK(decided(&s).ask && !decided(&s).holder_is_chatty); /* nothing is known of it */
    holder.usage.brief_ns = 10 * US;
    CHECK(decided(&s).ask && decided(&s).holder_is_chatty);
    waiter.missed = true; /* it was, and took the GIL again */
    CHECK(!decided(&s).holder_is_chatty);
    s = situation(0, 320 * MS, 15 * US);
    holder.usage.brief_ns = 10 * US;
    CHECK(decided(&s).ask && !decided(&s).holder_is_chatty);
    /* Whoever is asked again and again is not chatty for long. */
    struct plus_usage usage = {.brief_ns = 1 * US};
    for (unsigned i = 0; i < 30; i++) {
        plus_policy_held(&usage, 2 * US, true);
    }
    CHECK(usage.brief_ns > 20 * US);
}

static void
test_light_ones_do_not_ask_each_other(void)
{
    struct plus_situation s = situation(0, 0, 10 * US);

    CHECK(!decided(&s).ask && !decided(&s).wants);
    CHECK(decided(&s).holder_is_brief);
    CHECK(decided(&s).deadline_ns == s.now_ns + s.interval_ns);
    holder.usage.brief_ns = 50 * US; /* polling would not see the end of it */
    CHECK(!decided(&s).holder_is_brief);
    /* Impatience shortens the timer to the moment at which the holder is not light any more. */
    waiter.impatience = 1;
    CHECK(decided(&s).deadline_ns == s.now_ns + 990 * US);
}

static void
test_a_protected_run_is_left_alone(void)
{
    struct plus_situation s = situation(0, 8 * MS, 1 * MS);

    s.protected_until_ns = s.now_ns + 1;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.protected_until_ns);
    s.protected_until_ns = s.now_ns;
    CHECK(decided(&s).ask);
    s = situation(8, 320 * MS, 11 * MS);
    s.protected_until_ns = s.now_ns + 1;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.protected_until_ns);
}

static void
test_nobody_asks_an_atomic_holder(void)
{
    for (unsigned waiting = 0; waiting < PLUS_LEVELS; waiting++) {
        struct plus_situation s = situation(waiting, 320 * MS, 11 * MS);

        s.holder_atomic = true;
        CHECK(!decided(&s).ask && decided(&s).wants);
        CHECK(decided(&s).deadline_ns == s.now_ns + PLUS_SAFETY_NS);
    }
}

static void
test_a_heavier_waiter_waits(void)
{
    struct plus_situation s = situation(8, 0, 10 * US);

    CHECK(!decided(&s).ask && !decided(&s).wants);
    CHECK(decided(&s).deadline_ns == s.now_ns + s.interval_ns);
    CHECK(decided(&s).holder_is_brief);
    s.self_is_first = false;
    CHECK(!decided(&s).holder_is_brief);
    /* One that goes on for long leaves it its share. */
    s = situation(8, 0, 0);
    holder = (struct plus_thread){
        .usage = {.usual_ns = 50 * MS},
        .acquired_ns = s.now_ns - PLUS_STARVATION_NS,
    };
    CHECK(decided(&s).ask);
    s = situation(8, 0, 10 * US);
    /* But one that the holder overtakes over and over, by giving it up for a moment, asks. */
    waiter.missed = true;
    waiter.wait_start_ns = s.now_ns - PLUS_STARVATION_NS;
    CHECK(decided(&s).ask);
}

static void
test_equal_ones_take_turns(void)
{
    struct plus_situation s = situation(8, 320 * MS, 4 * MS);

    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.now_ns + 5 * MS);
    /* What it used before it was interrupted counts too. */
    holder.turn_used_ns = 5 * MS;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.now_ns + 1 * MS);
    holder.turn_used_ns = 6 * MS;
    CHECK(decided(&s).ask);
    s.asked = true;
    CHECK(!decided(&s).ask);
    /* Whoever comes back in its own turn asks whoever filled in. */
    s = situation(8, 320 * MS, 1 * US);
    waiter.ticket = 6;
    CHECK(decided(&s).ask);
}

static void
test_an_eager_policy_asks_at_once(void)
{
    struct plus_situation s = situation(8, 0, 1);
    struct plus_policy eager = policy;

    eager.eager = true;
    CHECK(plus_policy_decide(&eager, &s).ask);
}

static void
test_a_holder_that_is_not_timed(void)
{
    struct plus_situation s = situation(0, 0, 0);

    holder.acquired_ns = 0;
    CHECK(!decided(&s).ask);
    holder.acquired_ns = s.now_ns + 1; /* the clock was read before it got the GIL */
    CHECK(!decided(&s).ask);
}

int
main(void)
{
    test_levels();
    test_the_account();
    test_waiting_makes_no_job_of_a_handler();
    test_demand_is_of_the_recent_past();
    test_quantum_and_debt();
    test_nobody_holds();
    test_a_lighter_waiter_asks_at_once();
    test_a_chatty_holder_is_polled_out_first();
    test_light_ones_do_not_ask_each_other();
    test_a_protected_run_is_left_alone();
    test_nobody_asks_an_atomic_holder();
    test_a_heavier_waiter_waits();
    test_equal_ones_take_turns();
    test_an_eager_policy_asks_at_once();
    test_a_holder_that_is_not_timed();
    return 0;
}
