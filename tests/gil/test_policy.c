/* Each rule of the policy, with numbers that one can check in the head. */
#include "check.h"

#include "gil/policy.h"

#include <stdbool.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static const struct plus_policy policy = {
    .grace_ns = 1 * MS,
    .batch_slice_ns = 10 * MS,
    .starvation_ns = 20 * MS,
    .spin_ns = 20 * US,
    .batch_share = 0.05,
};

static struct plus_thread waiter, holder;

/* A waiter of its class, first in its queue; an interactive holder since `held` ns. */
static struct plus_situation
situation(enum plus_class class, uint64_t account, uint64_t held)
{
    waiter = (struct plus_thread){.queued_as = class};
    holder = (struct plus_thread){.account_ns = account, .acquired_ns = 1000 * MS - held};
    return (struct plus_situation){
        .now_ns = 1000 * MS,
        .interval_ns = 5 * MS,
        .slice_ns = 10 * MS,
        .self = &waiter,
        .holder = &holder,
        .self_is_first = true,
        .self_is_next = true,
        .brief_hold_ns = 10 * US,
    };
}

static struct plus_decision
decided(const struct plus_situation *s)
{
    struct plus_decision decision = plus_policy_decide(&policy, s);

    CHECK(decision.deadline_ns > s->now_ns || decision.ask);
    CHECK(!(decision.ask && decision.wants));
    return decision;
}

static void
test_class(void)
{
    CHECK(plus_policy_class(&policy, 0) == PLUS_INTERACTIVE);
    CHECK(plus_policy_class(&policy, 1 * MS) == PLUS_INTERACTIVE);
    CHECK(plus_policy_class(&policy, 1 * MS + 1) == PLUS_BATCH);
}

static void
test_account(void)
{
    CHECK(plus_policy_account(&policy, 0, 300 * US, true) == 300 * US);
    CHECK(plus_policy_account(&policy, 200 * US, 300 * US, false) == 250 * US);
    /* Capped, so that a long run is not held against a thread for ever. */
    CHECK(plus_policy_account(&policy, 0, 5000 * MS, true) == PLUS_ACCOUNT_CAP * MS);
    CHECK(plus_policy_account(&policy, 8 * MS, 5000 * MS, false) == PLUS_ACCOUNT_CAP * MS / 2);
    /* A CPU-bound thread is only ever asked: it stays batch; one that stops is not for long. */
    uint64_t account = 0;
    for (int i = 0; i < 100; i++) {
        account = plus_policy_account(&policy, account, 100 * US, true);
    }
    CHECK(plus_policy_class(&policy, account) == PLUS_BATCH);
    int rounds = 0;
    while (plus_policy_class(&policy, account) == PLUS_BATCH) {
        account = plus_policy_account(&policy, account, 10 * US, false);
        rounds++;
    }
    CHECK(rounds <= 4);
}

static void
test_decay(void)
{
    CHECK(plus_policy_decay(4 * MS, 4 * MS) == 3 * MS);
    CHECK(plus_policy_decay(4 * MS, 0) == 4 * MS);
    CHECK(plus_policy_decay(4 * MS, 16 * MS) == 0);
    CHECK(plus_policy_decay(4 * MS, UINT64_MAX) == 0);
}

static void
test_quantum_and_debt(void)
{
    struct plus_policy half = policy, none = policy;

    half.batch_share = 0.5;
    none.batch_share = 0.0;
    CHECK(plus_policy_quantum_ns(&half) == half.starvation_ns);
    CHECK(plus_policy_quantum_ns(&none) == 0);
    CHECK(plus_policy_repaid_ns(&half, 3 * MS) == 3 * MS);
    CHECK(plus_policy_repaid_ns(&none, 1) == UINT64_MAX);
    /* One quantum pays for one starvation time, to a nanosecond's rounding. */
    uint64_t quantum = plus_policy_quantum_ns(&policy);
    CHECK(quantum > 1052 * US && quantum < 1053 * US);
    uint64_t repaid = plus_policy_repaid_ns(&policy, quantum);
    CHECK(repaid <= policy.starvation_ns && repaid + 100 > policy.starvation_ns);
    /* No overflow into a small number. */
    CHECK(plus_policy_repaid_ns(&policy, UINT64_MAX / 2) == UINT64_MAX);
}

static void
test_nobody_holds(void)
{
    struct plus_situation s = situation(PLUS_BATCH, 0, 0);

    s.holder = NULL;
    CHECK(!decided(&s).ask && !decided(&s).wants);
}

static void
test_interactive_asks_a_batch_holder_at_once(void)
{
    struct plus_situation s = situation(PLUS_INTERACTIVE, 8 * MS, 1);

    CHECK(decided(&s).ask);
    CHECK(decided(&s).holder_is_brief);
    /* By this hold alone it became one. */
    s = situation(PLUS_INTERACTIVE, 0, 1 * MS + 1);
    CHECK(decided(&s).ask);
    /* Not the first in the queue: all the same, who is first may be asleep. */
    s.self_is_first = s.self_is_next = false;
    s.ahead = 3;
    CHECK(decided(&s).ask);
    /* Once is enough. */
    s.asked = true;
    CHECK(!decided(&s).ask && !decided(&s).wants);
}

static void
test_interactive_does_not_ask_an_interactive_holder(void)
{
    struct plus_situation s = situation(PLUS_INTERACTIVE, 0, 10 * US);

    CHECK(!decided(&s).ask && !decided(&s).wants);
    CHECK(decided(&s).holder_is_brief);
    CHECK(decided(&s).deadline_ns == s.now_ns + s.interval_ns);
    s.brief_hold_ns = 50 * US; /* polling would not see the end of it */
    CHECK(!decided(&s).holder_is_brief);
    /* Farther back, later; but never without any timer. */
    s.self_is_first = s.self_is_next = false;
    s.ahead = 2;
    CHECK(decided(&s).deadline_ns == s.now_ns + 3 * s.interval_ns);
    s.ahead = 1000000;
    CHECK(decided(&s).deadline_ns == s.now_ns + PLUS_SAFETY_NS);
}

static void
test_impatience_shortens_the_timer_to_the_grace(void)
{
    struct plus_situation s = situation(PLUS_INTERACTIVE, 0, 400 * US);

    waiter.impatience = 1;
    CHECK(decided(&s).deadline_ns == s.now_ns + 600 * US);
    s.self_is_first = s.self_is_next = false;
    s.ahead = 1;
    CHECK(decided(&s).deadline_ns == s.now_ns + 2 * s.interval_ns);
}

static void
test_a_protected_run_is_left_alone(void)
{
    struct plus_situation s = situation(PLUS_INTERACTIVE, 8 * MS, 1 * MS);

    s.protected_until_ns = s.now_ns + 1;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.protected_until_ns);
    s.protected_until_ns = s.now_ns;
    CHECK(decided(&s).ask);
    s = situation(PLUS_BATCH, 8 * MS, 11 * MS);
    s.protected_until_ns = s.now_ns + 1;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.protected_until_ns);
}

static void
test_nobody_asks_an_atomic_holder(void)
{
    for (int class = 0; class < 2; class++) {
        struct plus_situation s = situation(class, 8 * MS, 11 * MS);

        s.holder_atomic = true;
        CHECK(!decided(&s).ask && decided(&s).wants);
        CHECK(decided(&s).deadline_ns == s.now_ns + PLUS_SAFETY_NS);
    }
}

static void
test_batch_waits_for_an_interactive_holder(void)
{
    struct plus_situation s = situation(PLUS_BATCH, 0, 10 * US);

    CHECK(!decided(&s).ask && !decided(&s).wants);
    CHECK(decided(&s).deadline_ns == s.now_ns + s.slice_ns);
    s.self_is_first = s.self_is_next = false;
    CHECK(decided(&s).deadline_ns == s.now_ns + PLUS_SAFETY_NS);
    CHECK(!decided(&s).holder_is_brief);
}

static void
test_batch_asks_a_batch_holder_after_its_slice(void)
{
    struct plus_situation s = situation(PLUS_BATCH, 8 * MS, 4 * MS);

    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.now_ns + 6 * MS);
    /* What it used before it was interrupted counts too, if it is its turn. */
    s.turn_used_ns = 6 * MS;
    CHECK(!decided(&s).ask);
    s.holder_has_turn = true;
    CHECK(decided(&s).ask);
    s.asked = true;
    CHECK(!decided(&s).ask);
    /* The others in the queue have no near timer and never ask. */
    s.asked = false;
    s.self_is_first = s.self_is_next = false;
    CHECK(!decided(&s).ask && decided(&s).deadline_ns == s.now_ns + PLUS_SAFETY_NS);
}

static void
test_a_holder_that_is_not_timed(void)
{
    struct plus_situation s = situation(PLUS_INTERACTIVE, 0, 0);

    holder.acquired_ns = 0;
    CHECK(!decided(&s).ask);
    holder.acquired_ns = s.now_ns + 1; /* the clock was read before it got the GIL */
    CHECK(!decided(&s).ask);
}

int
main(void)
{
    test_class();
    test_account();
    test_decay();
    test_quantum_and_debt();
    test_nobody_holds();
    test_interactive_asks_a_batch_holder_at_once();
    test_interactive_does_not_ask_an_interactive_holder();
    test_impatience_shortens_the_timer_to_the_grace();
    test_a_protected_run_is_left_alone();
    test_nobody_asks_an_atomic_holder();
    test_batch_waits_for_an_interactive_holder();
    test_batch_asks_a_batch_holder_after_its_slice();
    test_a_holder_that_is_not_timed();
    return 0;
}
