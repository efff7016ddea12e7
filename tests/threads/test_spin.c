/* What spin.c decides, one wait after the other, with a clock of our own. */
#define _GNU_SOURCE
#include "../gil/check.h"

#include "_base/process/clock.h"
#include "threads/waiting/spin.h"

#include <sched.h>

#define SHORT_NS UINT64_C(1000)
#define LONG_NS (PLUS_SPIN_LONG_NS + 1u)
#define RECHECK_NS (UINT64_C(100) * PLUS_NS_PER_MS)
#define CREDIT_FULL 8u
#define TRIAL_EVERY 16u
#define ME 1u
#define OTHER 2u

static uint64_t now = PLUS_NS_PER_S;
static cpu_set_t all;
static uint32_t cpus;

static struct plus_spin
new_object(void)
{
    return (struct plus_spin){.credit = PLUS_SPIN_NEW};
}

/* The processors are counted anew at the next decision. */
static void
run_on(const cpu_set_t *set)
{
    CHECK(sched_setaffinity(0, sizeof(*set), set) == 0);
    now += RECHECK_NS;
}

static void
run_on_one(void)
{
    cpu_set_t one;
    int first = 0;

    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    run_on(&one);
}

static enum plus_spin_way
begin(struct plus_spin *spin)
{
    now += SHORT_NS;
    return plus_spin_begins(spin, ME, false, now);
}

/* One wait that would poll, if it may: returns how it did. */
static enum plus_spin_way
one_wait(struct plus_spin *spin, bool caught, uint64_t waited_ns)
{
    enum plus_spin_way way = begin(spin);

    if (way != PLUS_SPIN_NOT) {
        plus_spin_ended(spin, ME, way);
    }
    plus_spin_learn(spin, way != PLUS_SPIN_NOT, way != PLUS_SPIN_NOT && caught, waited_ns);
    return way;
}

/* What others learnt is what a new object begins with: back to the best opinion. */
static void
forget_lessons(void)
{
    struct plus_spin spin = new_object();

    spin.credit = CREDIT_FULL;
    for (unsigned i = 0; i < CREDIT_FULL; i++) {
        plus_spin_learn(&spin, true, true, SHORT_NS);
    }
    CHECK(spin.credit == CREDIT_FULL);
}

/* --- credit: the same whether it polls or yields */

static void
test_a_new_object_tries(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    CHECK(one_wait(&spin, true, SHORT_NS) == way);
    CHECK(spin.credit == CREDIT_FULL);
}

static void
test_stops_where_it_does_not_pay(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    for (unsigned i = 0; i < CREDIT_FULL; i++) {
        CHECK(one_wait(&spin, false, SHORT_NS) == way);
        CHECK(spin.credit == CREDIT_FULL - 1u - i);
    }
    /* Then one wait in so many is a trial, again and again. */
    for (unsigned trial = 0; trial < 3; trial++) {
        for (unsigned i = 1; i < TRIAL_EVERY; i++) {
            CHECK(one_wait(&spin, false, SHORT_NS) == PLUS_SPIN_NOT);
        }
        CHECK(one_wait(&spin, false, SHORT_NS) == way);
        CHECK(spin.credit == 0);
    }
}

static void
test_one_trial_that_pays_is_enough(enum plus_spin_way way)
{
    struct plus_spin spin = {.credit = 0};

    for (unsigned i = 1; i < TRIAL_EVERY; i++) {
        CHECK(one_wait(&spin, true, SHORT_NS) == PLUS_SPIN_NOT);
    }
    for (unsigned credit = 2; credit <= CREDIT_FULL; credit += 2) {
        CHECK(one_wait(&spin, true, SHORT_NS) == way);
        CHECK(spin.credit == credit);
    }
    CHECK(one_wait(&spin, true, SHORT_NS) == way);
    CHECK(spin.credit == CREDIT_FULL); /* and not more */
    /* One that paid outweighs one that did not. */
    for (unsigned i = 0; i < 100; i++) {
        CHECK(one_wait(&spin, i % 2u == 0, SHORT_NS) == way);
    }
    CHECK(spin.credit >= CREDIT_FULL - 1u);
}

static void
test_long_waits_stop_it_quickly(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    for (unsigned credit = CREDIT_FULL / 2u; credit > 0; credit /= 2u) {
        CHECK(one_wait(&spin, false, LONG_NS) == way);
        CHECK(spin.credit == credit);
    }
    CHECK(one_wait(&spin, false, LONG_NS) == way);
    CHECK(spin.credit == 0);
    /* As long as the waits are long, there is not even a trial. */
    for (unsigned i = 0; i < 300; i++) {
        CHECK(one_wait(&spin, false, LONG_NS) == PLUS_SPIN_NOT);
    }
    for (unsigned i = 1; i < TRIAL_EVERY; i++) {
        CHECK(one_wait(&spin, false, SHORT_NS) == PLUS_SPIN_NOT);
    }
    CHECK(one_wait(&spin, false, SHORT_NS) == way);
    /* A long wait that was caught all the same paid. */
    spin.credit = 1;
    CHECK(one_wait(&spin, true, LONG_NS) == way);
    CHECK(spin.credit == 3);
}

static void
test_a_wait_that_did_not_poll_says_little(void)
{
    struct plus_spin spin = {.credit = 5};

    plus_spin_learn(&spin, false, false, SHORT_NS);
    CHECK(spin.credit == 5);
    plus_spin_learn(&spin, false, false, PLUS_SPIN_LONG_NS); /* not longer than the limit */
    CHECK(spin.credit == 5);
    plus_spin_learn(&spin, false, false, LONG_NS); /* polling would have been for nothing */
    CHECK(spin.credit == 2);
}

static void
test_new_objects_begin_with_what_others_learnt(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();
    struct plus_spin next = new_object();

    forget_lessons();
    for (unsigned i = 0; i < 50; i++) {
        one_wait(&spin, false, LONG_NS);
    }
    /* They always try once, so that this can change. */
    CHECK(one_wait(&next, false, SHORT_NS) == way);
    CHECK(next.credit == 0);
    next = new_object();
    CHECK(one_wait(&next, true, SHORT_NS) == way);
    CHECK(next.credit == 3);
    forget_lessons();
    next = new_object();
    CHECK(one_wait(&next, false, SHORT_NS) == way);
    CHECK(next.credit == CREDIT_FULL - 1u);
}

/* --- places */

static void
test_one_at_a_time_on_an_object(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    CHECK(begin(&spin) == way);
    CHECK(begin(&spin) == PLUS_SPIN_NOT);
    plus_spin_ended(&spin, ME, way);
    CHECK(begin(&spin) == way);
    plus_spin_ended(&spin, ME, way);
}

/* Two threads that answer each other: the one that was answered has no processor until the other one
 * waits. */
static void
test_whose_wait_was_ended_polls_no_more(enum plus_spin_way way)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    CHECK(begin(&spin) == way);
    plus_spin_met(&spin, OTHER); /* that of somebody else who waits there */
    CHECK(begin(&spin) == PLUS_SPIN_NOT);
    plus_spin_met(&spin, ME);
    CHECK(way == PLUS_SPIN_POLL || plus_spin_begins(&spin, OTHER, false, now) == way);
    /* The place is there again when the poller knows it, and the other's mark stays. */
    plus_spin_ended(&spin, ME, way);
    CHECK(way == PLUS_SPIN_POLL || atomic_load(&spin.poller) == OTHER);
}

/* Polling leaves one processor to whoever is waited for. */
static void
test_as_many_pollers_as_there_are_other_processors(void)
{
    struct plus_spin *spins = calloc(cpus, sizeof(*spins));

    CHECK(spins != NULL);
    forget_lessons();
    for (uint32_t i = 0; i < cpus; i++) {
        spins[i] = new_object();
        CHECK(begin(&spins[i]) == (i + 1u < cpus ? PLUS_SPIN_POLL : PLUS_SPIN_FULL));
    }
    /* Refused, it took no place and left no mark. */
    CHECK(atomic_load(&spins[cpus - 1u].poller) == 0);
    CHECK(!plus_spin_await_place(now));
    plus_spin_ended(&spins[0], ME, PLUS_SPIN_POLL);
    CHECK(plus_spin_await_place(now));
    CHECK(begin(&spins[cpus - 1u]) == PLUS_SPIN_POLL);
    CHECK(begin(&spins[0]) == PLUS_SPIN_FULL);
    /* The child of a fork has none of the threads that polled. */
    plus_spin_atfork_child();
    CHECK(begin(&spins[0]) == PLUS_SPIN_POLL);
    plus_spin_ended(&spins[0], ME, PLUS_SPIN_POLL);
    free(spins);
}

/* A trial that finds no place is made up for at the next wait. */
static void
test_a_trial_without_a_place_is_not_lost(void)
{
    struct plus_spin spin = {.credit = 0};

    for (unsigned i = 1; i < TRIAL_EVERY; i++) {
        CHECK(begin(&spin) == PLUS_SPIN_NOT);
    }
    atomic_store(&spin.poller, OTHER);
    CHECK(begin(&spin) == PLUS_SPIN_NOT);
    atomic_store(&spin.poller, 0);
    CHECK(begin(&spin) != PLUS_SPIN_NOT);
    plus_spin_ended(&spin, ME, cpus > 1 ? PLUS_SPIN_POLL : PLUS_SPIN_YIELD);
    CHECK(begin(&spin) == PLUS_SPIN_NOT);
}

/* --- one processor */

static void
test_yields_on_one_processor(void)
{
    struct plus_spin spins[3] = {new_object(), new_object(), new_object()};

    forget_lessons();
    for (unsigned i = 0; i < 3; i++) { /* needs no place: nothing is taken from anybody */
        CHECK(begin(&spins[i]) == PLUS_SPIN_YIELD);
    }
    for (unsigned i = 0; i < 3; i++) {
        plus_spin_ended(&spins[i], ME, PLUS_SPIN_YIELD);
    }
    CHECK(begin(&spins[0]) == PLUS_SPIN_YIELD);
    plus_spin_ended(&spins[0], ME, PLUS_SPIN_YIELD);
}

/* A program may be moved; to ask the kernel before each wait would cost more than it saves. */
static void
test_counts_the_processors_now_and_then(void)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    now += RECHECK_NS;
    uint64_t read = now;
    CHECK(plus_spin_begins(&spin, ME, false, read) == PLUS_SPIN_POLL);
    plus_spin_ended(&spin, ME, PLUS_SPIN_POLL);
    run_on_one();
    CHECK(plus_spin_begins(&spin, ME, false, read + RECHECK_NS - 1u) == PLUS_SPIN_POLL);
    plus_spin_ended(&spin, ME, PLUS_SPIN_POLL);
    CHECK(plus_spin_begins(&spin, ME, false, read + RECHECK_NS) == PLUS_SPIN_YIELD);
    plus_spin_ended(&spin, ME, PLUS_SPIN_YIELD);
    now = read + RECHECK_NS;
    run_on(&all);
    CHECK(begin(&spin) == PLUS_SPIN_POLL);
    plus_spin_ended(&spin, ME, PLUS_SPIN_POLL);
}

/* A process that computes on the other processors leaves this one to both sides. */
static void
test_yields_to_a_side_on_the_same_processor(void)
{
    struct plus_spin spin = new_object();

    forget_lessons();
    CHECK(plus_spin_begins(&spin, ME, true, now) == PLUS_SPIN_YIELD);
    plus_spin_ended(&spin, ME, PLUS_SPIN_YIELD);
    CHECK(begin(&spin) == PLUS_SPIN_POLL);
    plus_spin_ended(&spin, ME, PLUS_SPIN_POLL);
}

static void
test_either_way(enum plus_spin_way way)
{
    test_a_new_object_tries(way);
    test_stops_where_it_does_not_pay(way);
    test_one_trial_that_pays_is_enough(way);
    test_long_waits_stop_it_quickly(way);
    test_new_objects_begin_with_what_others_learnt(way);
    test_one_at_a_time_on_an_object(way);
    test_whose_wait_was_ended_polls_no_more(way);
}

int
main(void)
{
    CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
    cpus = (uint32_t)CPU_COUNT(&all);
    test_a_wait_that_did_not_poll_says_little();
    test_a_trial_without_a_place_is_not_lost();
    if (cpus > 1) {
        test_either_way(PLUS_SPIN_POLL);
        test_as_many_pollers_as_there_are_other_processors();
        test_counts_the_processors_now_and_then();
        test_yields_to_a_side_on_the_same_processor();
    }
    run_on_one();
    test_either_way(PLUS_SPIN_YIELD);
    test_yields_on_one_processor();
    return 0;
}
