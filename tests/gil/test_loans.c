/* Whom a thread is served as: lending for several things, by several lenders. */
#include "check.h"

#include "gil/scheduler/loans.h"
#include "gil/scheduler/policy.h"

static void
test_the_best_loan_counts(void)
{
    struct plus_thread owner = {0};
    _Atomic uint64_t lock, other;

    CHECK(plus_loans_level(&owner) == PLUS_LEVELS);
    CHECK(plus_loans_add(&owner, &lock, 3) && plus_loans_level(&owner) == 3);
    CHECK(plus_loans_add(&owner, &other, 1) && plus_loans_level(&owner) == 1);
    plus_loans_end(&owner, &other);
    CHECK(plus_loans_level(&owner) == 3 && atomic_load(&owner.loan_count) == 1);
    plus_loans_end(&owner, &other); /* nothing is left of it */
    plus_loans_end(&owner, &lock);
    CHECK(plus_loans_level(&owner) == PLUS_LEVELS && atomic_load(&owner.loan_count) == 0);
}

static void
test_several_lenders_of_one_thing(void)
{
    struct plus_thread owner = {0};
    _Atomic uint64_t lock = 0;

    CHECK(plus_loans_add(&owner, &lock, 4) && plus_loans_add(&owner, &lock, 1));
    CHECK(atomic_load(&owner.loan_count) == 1 && plus_loans_level(&owner) == 1);
    plus_loans_take_back(&owner, &lock); /* one waits still */
    CHECK(atomic_load(&owner.loan_count) == 1);
    plus_loans_take_back(&owner, &lock);
    CHECK(atomic_load(&owner.loan_count) == 0);
    plus_loans_take_back(&owner, &lock); /* the owner has let go before */
    CHECK(atomic_load(&owner.loan_count) == 0);
}

static void
test_what_is_raised_ends_with_its_lender(void)
{
    struct plus_thread owner = {0};
    _Atomic uint64_t lock = 0;

    CHECK(!plus_loans_raise(&owner, &lock, 1) && plus_loans_level(&owner) == PLUS_LEVELS);
    CHECK(plus_loans_add(&owner, &lock, 7) && plus_loans_raise(&owner, &lock, 1));
    CHECK(plus_loans_level(&owner) == 1);
    CHECK(plus_loans_raise(&owner, &lock, 4) && plus_loans_level(&owner) == 1);
    plus_loans_take_back(&owner, &lock);
    CHECK(plus_loans_level(&owner) == PLUS_LEVELS && atomic_load(&owner.loan_count) == 0);
}

static void
test_there_is_an_end(void)
{
    struct plus_thread owner = {0};
    _Atomic uint64_t locks[PLUS_LOANS + 1];

    for (unsigned i = 0; i < PLUS_LOANS; i++) {
        CHECK(plus_loans_add(&owner, &locks[i], 2));
    }
    CHECK(!plus_loans_add(&owner, &locks[PLUS_LOANS], 1));
    CHECK(plus_loans_add(&owner, &locks[0], 1)); /* a second lender needs no room */
    plus_loans_end(&owner, &locks[0]);
    CHECK(plus_loans_level(&owner) == 2);
    CHECK(plus_loans_add(&owner, &locks[PLUS_LOANS], 1));
}

int
main(void)
{
    test_the_best_loan_counts();
    test_several_lenders_of_one_thing();
    test_what_is_raised_ends_with_its_lender();
    test_there_is_an_end();
    return 0;
}
