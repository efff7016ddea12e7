/* How an object learns whether polling pays, and which waiter may poll; spin.h explains why waiters poll.
 *
 * An object has a credit of 0 to CREDIT_MAX.  A wait whose end was caught adds CREDIT_PAID; a long wait halves the
 * credit; a short wait that polled in vain takes one off; a short wait that did not poll leaves it.  At 0 nobody polls,
 * except for one wait in TRIAL_EVERY: the other side may have become fast.  A long wait restarts that count, so a trial
 * comes only after short waits.  A new object begins with the credit that all waits of the process together have led
 * to, at least 1, so that it tries once.
 *
 * One waiter of an object polls at a time, named in `poller`.  The place is free again when its wait is *ended*, not
 * when the waiter notices: otherwise two threads that answer each other would find the place taken by themselves.  The
 * process has one place fewer than usable processors, counted in `pollers`; a poller gives its place back itself.
 *
 * On one processor, and beside a partner that runs on the same one, a waiter yields instead, which takes no place.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "spin.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/cpus.h"
#include "../../_base/process/futex.h"

#define CREDIT_MAX 8u
#define CREDIT_PAID 2u /* a wait in which polling paid makes up for one in which it did not */
/* Without credit, one wait in this many polls all the same, if the wait before was short. */
#define TRIAL_EVERY 16u

/* Plain atomics without a lock: two simultaneous writers lose one lesson, which does not matter. */
/* `pollers` has a cache line of its own: each wait writes it, and the linker had put words beside it that each wait
 * reads. */
static struct {
    _Alignas(PLUS_CACHE_LINE) _Atomic uint32_t count;
} pollers;
static _Atomic uint8_t first_credit = CREDIT_MAX; /* credit of new objects */

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
    /* If another waiter begins in between, a third may poll too; that does no harm. */
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
    /* The wait was short, and yet not caught: the wake-up may have made it longer. */
    return polled && credit > 0 ? credit - 1u : credit;
}

void
plus_spin_learn(struct plus_spin *spin, bool polled, bool caught, uint64_t waited_ns)
{
    uint8_t first = atomic_load_explicit(&first_credit, memory_order_relaxed);
    uint8_t after = changed(first, polled, caught, waited_ns);

    if (after == 0) {
        after = 1; /* never 0: a new object polls once, so that the credit can recover */
    }
    if (after != first) {
        atomic_store_explicit(&first_credit, after, memory_order_relaxed);
    }
    spin->credit = changed(spin->credit, polled, caught, waited_ns);
    if (waited_ns > PLUS_SPIN_LONG_NS) {
        spin->passed = 0; /* the next trial comes only after a short wait */
    }
}

void
plus_spin_atfork_child(void)
{
    atomic_store(&pollers.count, 0);
}
