/* The protocol of the lock's word.  lock.h explains the word, and why a release leaves the lock free.
 *
 *     0                     ---- try ------------->  LOCKED            with the GIL; no guard
 *     LOCKED                ---- release --------->  0                 with the GIL; no guard
 *     LOCKED                ---- first waiter ---->  LOCKED | SLOW     with the GIL, under the guard
 *     LOCKED | SLOW         ---- release --------->  SLOW              under the guard: the first waiter is WOKEN
 *     LOCKED | SLOW         ---- handing over ---->  LOCKED | SLOW     under the guard: the first waiter is GRANTED,
 *                                                                      and the owner from then on
 *     SLOW                  ---- try ------------->  LOCKED | SLOW     with the GIL; no guard
 *     ... | SLOW            ---- settle ---------->  ...               under the guard, when nobody waits or is woken
 *
 * (Without a GIL ignore "with the GIL"; the first two are compare-and-swaps then.)
 *
 * No release can miss a waiter: a waiter sets SLOW under the guard, in the same step in which it sees LOCKED, and a
 * release that finds SLOW takes the guard before it looks at the queue.
 *
 * `woken` says that a waiter was taken out of the queue and has not been back.  While it is set, a release wakes
 * nobody: the woken waiter is enough, and wakes the next by its own release.  So a woken waiter must come back through
 * the guard, whatever becomes of it, by plus_lock_after_wake().  No Python code runs before that: a signal handler
 * runs when the waiter is out of the queue and was not woken (plus_waiter_interrupt), or when the acquisition is over.
 * SLOW stays set for a waiter that leaves for handlers: mostly it comes back, and otherwise one release is slow.
 * A waiter that finds the lock free when it comes to queue counts as woken too.  A waiter that was woken in vain queues
 * at the head, its old place.
 *
 * A release hands the lock over, instead of waking, in two cases: the first waiter has waited for PLUS_STARVING_NS; or
 * the releasing thread has owned the lock at a better level than its own, lent by a sleeping waiter
 * (gil/scheduler/sched.h).
 *
 * The owner is cleared before the word is freed, and stored after the word is taken.  Any thread may release.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "lock.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/identity.h"
#include "../../gil/scheduler/sched.h"

#include <errno.h>

/* A tick is 66 us long, and the word of a tick comes again after 78 hours.  A lock that was never taken while threads
 * waited has an old tick, so a coincidence may make its hold too short, never too long.  A time of 64 bits would make
 * each lock larger by 16 bytes. */
#define TICK_SHIFT 16

static uint32_t
tick_of(uint64_t ns)
{
    return (uint32_t)(ns >> TICK_SHIFT);
}

void (*plus_lock_stalled)(const struct plus_lock *lock, const struct plus_lock_stall *stall);

void
plus_lock_init(struct plus_lock *lock)
{
    atomic_init(&lock->word, 0);
    atomic_init(&lock->owner, 0);
    lock->taken = 0;
    plus_waitq_init(&lock->queue);
}

/* Makes the lock free.  Threads that wait for it nevertheless are woken and try again. */
void
plus_lock_reinit(struct plus_lock *lock)
{
    plus_waitq_wake(&lock->queue, UINT32_MAX);
    lock->queue.woken = lock->queue.looked = 0;
    atomic_store(&lock->owner, 0);
    atomic_store(&lock->word, 0);
}

bool
plus_lock_is_locked(const struct plus_lock *lock)
{
    return (atomic_load_explicit(&lock->word, memory_order_relaxed) & PLUS_LOCK_LOCKED) != 0;
}

bool
plus_lock_try_slowly(struct plus_lock *lock, uint64_t identity)
{
    uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);

    do {
        if ((seen & PLUS_LOCK_LOCKED) != 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&lock->word, &seen, seen | PLUS_LOCK_LOCKED,
                                                    memory_order_acquire, memory_order_relaxed));
    atomic_store_explicit(&lock->owner, identity, memory_order_relaxed);
    if (plus_sched_stall_ns() != UINT64_MAX) {
        lock->taken = tick_of(plus_now_ns());
    }
    return true;
}

/* Called with the guard held.  Clears SLOW if no waiter is left that a release would have to wake, or has looked. */
static void
settle(struct plus_lock *lock)
{
    if (plus_waitq_length(&lock->queue) == 0 && (lock->queue.woken | lock->queue.looked) == 0) {
        atomic_fetch_and(&lock->word, ~PLUS_LOCK_SLOW);
    }
}

/* Adds up the waiters if the first one was kept waiting for too long. */
static void
add_waiters(const struct plus_lock *lock, uint64_t now, struct plus_lock_stall *stall)
{
    const struct plus_waiter *first = lock->queue.head;
    uint64_t longest_ns = now - first->start_ns;

    if (longest_ns < plus_sched_stall_ns()) {
        return;
    }
    stall->hold_ns = stall->held_ns < longest_ns ? stall->held_ns : longest_ns;
    for (const struct plus_waiter *each = first; each != NULL; each = each->next) {
        stall->waiters++;
        stall->waited_ns += now - each->start_ns;
    }
}

static void
hand_over(struct plus_lock *lock, uint64_t now, _Atomic uint32_t **sleeper)
{
    struct plus_waiter *first = lock->queue.head;

    lock->queue.handed_over_ns = now;
    lock->queue.counts.hand_overs++;
    atomic_store(&lock->owner, first->identity);
    lock->taken = tick_of(now);
    *sleeper = plus_waitq_end(&lock->queue, first, PLUS_WAITER_GRANTED);
    settle(lock);
}

int
plus_lock_release_slowly(struct plus_lock *lock)
{
    _Atomic uint32_t *sleeper = NULL;
    struct plus_lock_stall stall = {.waiters = 0};

    if ((atomic_load(&lock->word) & PLUS_LOCK_LOCKED) == 0) {
        return -EPERM;
    }
    /* A lock that another thread has taken is a signal: to wait for it is no stall. */
    bool is_own = atomic_load(&lock->owner) == plus_identity();
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    plus_waitq_lock(&lock->queue);
    bool looked = lock->queue.looked != 0;
    lock->queue.looked = 0;
    uint64_t now = looked || lock->queue.head != NULL ? plus_now_ns() : 0;
    stall.held_ns = (uint64_t)(tick_of(now) - lock->taken) << TICK_SHIFT;
    if (lock->queue.head != NULL) {
        /* The lock is handed over to a lighter thread at once: that thread interrupts the holder of the GIL. */
        if (plus_sched_owes() || plus_waitq_starves(&lock->queue, now)) {
            add_waiters(lock, now, &stall);
            hand_over(lock, now, &sleeper);
            goto done;
        }
        if (lock->queue.woken == 0) {
            lock->queue.woken = 1;
            sleeper = plus_waitq_end(&lock->queue, lock->queue.head, PLUS_WAITER_WOKEN);
        }
    }
    settle(lock);
    atomic_fetch_and_explicit(&lock->word, ~PLUS_LOCK_LOCKED, memory_order_release);
done:
    plus_waitq_unlock(&lock->queue);
    plus_sched_let_go(&lock->owner); /* the owner word no longer names this thread */
    plus_waitq_rouse(sleeper);
    if (plus_lock_stalled != NULL && (looked || stall.waiters > 0)) {
        plus_lock_stalled(lock, is_own ? &stall : NULL);
    }
    return 0;
}

/* Queues the waiter and sets SLOW in one step, or finds the lock free.  A release that sees SLOW takes the guard, which
 * is held here, so no release passes unseen between the check and the queueing. */
static bool
enqueue_unless_free(struct plus_lock *lock, struct plus_waiter *waiter)
{
    uint32_t seen = atomic_load(&lock->word);

    do {
        if ((seen & PLUS_LOCK_LOCKED) == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&lock->word, &seen, seen | PLUS_LOCK_SLOW));
    lock->queue.counts.contended += waiter->start_ns == 0;
    plus_waitq_enqueue(&lock->queue, waiter);
    return true;
}

bool
plus_lock_enqueue(struct plus_lock *lock, struct plus_waiter *waiter)
{
    waiter->owner = &lock->owner; /* while this thread sleeps, the owner is served at its level */
    plus_waitq_lock(&lock->queue);
    bool queued = enqueue_unless_free(lock, waiter);
    if (!queued) {
        lock->queue.woken = 1;
        atomic_fetch_or(&lock->word, PLUS_LOCK_SLOW);
    }
    plus_waitq_unlock(&lock->queue);
    return queued;
}

enum plus_wait_result
plus_lock_wait_nogil(struct plus_lock *lock, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    enum plus_wait_result result = plus_waiter_wait_nogil(&lock->queue, waiter, deadline_ns);

    if (result == PLUS_WAIT_TIMED_OUT) {
        plus_waitq_lock(&lock->queue);
        settle(lock);
        plus_waitq_unlock(&lock->queue);
    }
    return result;
}

uint64_t
plus_lock_look(struct plus_lock *lock)
{
    uint64_t owner = 0;

    plus_waitq_lock(&lock->queue);
    if (plus_lock_is_locked(lock)) {
        owner = atomic_load(&lock->owner);
        lock->queue.looked = 1;
        atomic_fetch_or(&lock->word, PLUS_LOCK_SLOW);
    }
    plus_waitq_unlock(&lock->queue);
    return owner;
}

/* Called by a woken waiter that has arrived: no woken waiter is on its way any more. */
static void
come_back(struct plus_lock *lock)
{
    plus_waitq_lock(&lock->queue);
    lock->queue.woken = 0;
    settle(lock);
    plus_waitq_unlock(&lock->queue);
}

bool
plus_lock_after_wake(struct plus_lock *lock, struct plus_waiter *waiter)
{
    bool taken = plus_lock_try(lock, waiter->identity);

    come_back(lock);
    return taken;
}
