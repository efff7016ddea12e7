/* The loans of one thread, a few in an array; sched.c has the protocol of lending (priority inheritance).
 *
 * A loan is identified by the thing, not by the lender: all waiters for one thing share one loan, which has the best of
 * their levels and their number.  It ends with the last lender, or when the owner lets go of the thing.  When a lender
 * leaves, the loan keeps its level until it ends, since no record says who lent what; that errs on the side of serving
 * the owner.  The order of the array does not matter, so the last entry fills a gap.
 *
 * loan_count is written after the loan it counts, because the owner reads it without the mutex; if it is above 0, the
 * owner takes the mutex.
 */
#include "loans.h"

#include "policy.h"

#include <stddef.h>

static uint32_t
count(const struct plus_thread *thread)
{
    return atomic_load_explicit(&thread->loan_count, memory_order_relaxed);
}

unsigned
plus_loans_level(const struct plus_thread *thread)
{
    unsigned best = PLUS_LEVELS;

    for (uint32_t i = 0; i < count(thread); i++) {
        best = thread->loans[i].level < best ? thread->loans[i].level : best;
    }
    return best;
}

static struct plus_loan *
find(struct plus_thread *thread, const _Atomic uint64_t *thing)
{
    for (uint32_t i = 0; i < count(thread); i++) {
        if (thread->loans[i].thing == thing) {
            return &thread->loans[i];
        }
    }
    return NULL;
}

bool
plus_loans_add(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level)
{
    struct plus_loan *loan = find(thread, thing);
    uint32_t known = count(thread);

    if (loan == NULL) {
        if (known == PLUS_LOANS) {
            return false;
        }
        loan = &thread->loans[known];
        *loan = (struct plus_loan){.thing = thing, .level = level};
        atomic_store(&thread->loan_count, known + 1u);
    }
    loan->level = level < loan->level ? level : loan->level;
    loan->lenders++;
    return true;
}

bool
plus_loans_raise(struct plus_thread *thread, const _Atomic uint64_t *thing, unsigned level)
{
    struct plus_loan *loan = find(thread, thing);

    if (loan == NULL) {
        return false;
    }
    loan->level = level < loan->level ? level : loan->level;
    return true;
}

static void
end(struct plus_thread *thread, struct plus_loan *loan)
{
    uint32_t last = count(thread) - 1u;

    *loan = thread->loans[last];
    atomic_store(&thread->loan_count, last);
}

void
plus_loans_take_back(struct plus_thread *thread, const _Atomic uint64_t *thing)
{
    struct plus_loan *loan = find(thread, thing);

    if (loan != NULL && --loan->lenders == 0) {
        end(thread, loan);
    }
}

void
plus_loans_end(struct plus_thread *thread, const _Atomic uint64_t *thing)
{
    struct plus_loan *loan = find(thread, thing);

    if (loan != NULL) {
        end(thread, loan);
    }
}
