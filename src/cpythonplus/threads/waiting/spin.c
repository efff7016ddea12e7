/* What an object learns of polling, and who may poll; why anybody does: spin.h.
 *
 * An object has a credit of 0 to CREDIT_MAX.  A wait whose end was caught adds CREDIT_PAID; one that was long halves it;
 * one that was short and polled in vain takes one off; one that was short and did not poll leaves it.  With none left
 * nobody polls, but for one wait in TRIAL_EVERY: the other side may have become fast.  A long wait begins that
 * count anew, so that a trial comes after short ones only.  A new object begins with the credit that all waits of the
 * process together have led to, of at least 1: so there is always one that tries.
 *
 * One waiter of an object polls at a time, named in `poller`.  The place is free again when its wait is *ended*, by whoever
 * does that, not when it notices: else two threads that answer each other would find the place taken by themselves.  The
 * process has as many places as there are usable processors but one, in `pollers`, which a poller gives back itself.
 *
 * On one processor, and beside a partner that runs on the same one, a waiter yields instead: that takes no place.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "spin.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/cpus.h"
#include "../../_base/process/futex.h"

#define CREDIT_MAX 8u
#define CREDIT_PAID 2u /* one that paid outweighs one that did not */
/* One wait in so many is tried all the same, if the wait before was short. */
#define TRIAL_EVERY 16u

/* Plain atomics without a lock: two writers at once lose one lesson, which does not matter. */
/* In a cache line of its own: each wait writes it, and what the linker put beside it was read in every wait. */
static struct {
    _Alignas(PLUS_CACHE_LINE) _Atomic uint32_t count;
} pollers;
static _Atomic uint8_t first_credit = CREDIT_MAX; /* what new objects begin with */

static bool
book(uint32_t places)
{
    uint32_t taken = atomic_load_explicit(&pollers.count, memory_order_relaxed);

    while (taken < places) {
        if (atomic_compare_exchange_weak(&pollers.count, &taken, taken + 1u)) {
            return true;
        }
    }
    return false;
}

enum plus_spin_way
plus_spin_begins(struct plus_spin *spin, uint32_t poller, bool beside, uint64_t now_ns)
{
    if (spin->credit == PLUS_SPIN_NEW) {
        spin->credit = atomic_load_explicit(&first_credit, memory_order_relaxed);
    }
    if (spin->credit == 0 && ++spin->passed < TRIAL_EVERY) {
        return PLUS_SPIN_NOT;
    }
    if (atomic_load_explicit(&spin->poller, memory_order_relaxed) != 0) {
        return PLUS_SPIN_NOT;
    }
    uint32_t usable = plus_usable_cpus(now_ns);
    bool yields = beside || usable == 1u;
    if (!yields && !book(usable - 1u)) {
        return PLUS_SPIN_FULL;
    }
    spin->passed = 0;
    atomic_store_explicit(&spin->poller, poller, memory_order_relaxed);
    return yields ? PLUS_SPIN_YIELD : PLUS_SPIN_POLL;
}

void
plus_spin_met(struct plus_spin *spin, uint32_t waiter)
{
    /* If another one begins in between, a third may poll, too. */
    if (atomic_load_explicit(&spin->poller, memory_order_relaxed) == waiter) {
        atomic_store_explicit(&spin->poller, 0, memory_order_relaxed);
    }
}

bool
plus_spin_await_place(uint64_t now_ns)
{
    uint32_t places = plus_usable_cpus(now_ns) - 1u;
    uint64_t until_ns = now_ns + PLUS_SPIN_PLACE_NS;

    while (atomic_load_explicit(&pollers.count, memory_order_relaxed) >= places) {
        if (plus_now_ns() >= until_ns) {
            return false;
        }
        plus_cpu_relax();
    }
    return true;
}

void
plus_spin_ended(struct plus_spin *spin, uint32_t poller, enum plus_spin_way way)
{
    plus_spin_met(spin, poller);
    if (way == PLUS_SPIN_POLL) {
        atomic_fetch_sub(&pollers.count, 1);
    }
}

static uint8_t
changed(uint8_t credit, bool polled, bool caught, uint64_t waited_ns)
{
    if (caught) {
        return credit + CREDIT_PAID < CREDIT_MAX ? (uint8_t)(credit + CREDIT_PAID) : CREDIT_MAX;
    }
    if (waited_ns > PLUS_SPIN_LONG_NS) {
        return credit / 2u;
    }
    /* Short, and yet not caught: the time that the wake-up took may have made it longer. */
    return polled && credit > 0 ? credit - 1u : credit;
}

void
plus_spin_learn(struct plus_spin *spin, bool polled, bool caught, uint64_t waited_ns)
{
    uint8_t first = atomic_load_explicit(&first_credit, memory_order_relaxed);
    uint8_t after = changed(first, polled, caught, waited_ns);

    if (after == 0) {
        after = 1; /* new objects always try once, so that this can recover */
    }
    if (after != first) {
        atomic_store_explicit(&first_credit, after, memory_order_relaxed);
    }
    spin->credit = changed(spin->credit, polled, caught, waited_ns);
    if (waited_ns > PLUS_SPIN_LONG_NS) {
        spin->passed = 0; /* the next trial only after a short wait */
    }
}

void
plus_spin_atfork_child(void)
{
    atomic_store(&pollers.count, 0);
}
