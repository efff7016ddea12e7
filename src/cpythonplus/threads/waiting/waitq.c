/* The protocol of one wait.  waitq.h has the picture, the ownership and the contract.
 *
 *     WAITING <--------> ASLEEP      the waiter itself, by compare-and-swap
 *         \                /
 *          v              v
 *          WOKEN or GRANTED          the thread that ends the wait, by an exchange, with the guard held
 *
 * 1. The waiter queues itself under the guard.  (Most callers still hold the GIL, so a thread that holds the GIL and
 *    sees an empty queue knows that nobody begins to wait.)  Then it gives the GIL up.
 * 2. It polls its word, or yields, if that pays (spin.h).  If its polling caught the end, it does not ask for the GIL
 *    at once: the thread that ended its wait mostly has the GIL and is about to wait itself.
 * 3. If the word is still WAITING, it stores ASLEEP, and sleeps while the word is ASLEEP.  An end that comes between
 *    the two changes the word, so the kernel does not let it sleep; an end that comes before finds WAITING, and makes
 *    no system call.
 * 4. The thread that ends the wait takes the node out, exchanges the word, releases the guard, and only then makes the
 *    system call, if it had found ASLEEP.  By that time the node may be gone.  If another sleeper is at this address by
 *    then, the sleeper checks its own word and sleeps on; every futex sleeper must allow for stray wake-ups anyway.
 * 5. finish() takes the guard in every case.  Under it a waiter that gives up finds that it was ended in time, or takes
 *    itself out, and the wait is counted.  So ending a wait and giving up exclude each other, and the node stays until
 *    the thread that ended the wait has released the guard.
 *
 * A thread that runs signal handlers returns from 2 and 3 with SIGNAL, still queued.  plus_waiter_interrupt() then
 * checks under the guard: if the wait was ended by now, it is over, and the interpreter runs the handlers later.
 * Otherwise the waiter leaves the queue for the handlers, and comes back to its old place, before waiters that began
 * later.  A waiter that only waits for news stays; if its wait ends meanwhile, its word says so when it goes on or
 * leaves. Rejected: letting all waiters stay.  A lock was then given to a thread that was in a handler; the handler,
 * which wanted the same lock, waited for its own thread.
 *
 * The guard's word contains the generation of the process.  If that is another generation, the holder is not in this
 * process: the word is taken over by the same compare-and-swap as a free one, and the queue is emptied.  A child puts
 * the staying waiters of its own thread back before any other thread can look (plus_waitq_atfork_child).
 *
 * To end many waits at once the guard is taken for WAKE_BATCH of them at a time, so that roused waiters that finish do
 * not have to wait for all others.  The relay decides which waiter is roused when (relay.h).
 */
#define _GNU_SOURCE
#include "waitq.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/cpus.h"
#include "../../_base/process/futex.h"
#include "../../_base/process/identity.h"
#include "../../_base/rank.h"

#include <assert.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* How often a thread polls for the guard, and then yields, before it sleeps.  The guard is held for less than a
 * microsecond, unless the kernel took the holder's processor away. */
#define GUARD_POLLS 64u
#define GUARD_YIELDS 16u
#define GUARD_SLEEP_NS 50000L

/* The longest time for which a waiter that caught its wake-up waits for the waker to give the GIL up. */
#define PARK_LIMIT_NS UINT64_C(2000)

/* PARK_LIMIT_NS for a waker that goes on producing. */
#define STREAM_LIMIT_NS UINT64_C(50000)

/* A waiter with `heeds_signals` wakes once after this time to check for signals: a signal that came between giving up
 * the GIL and sleeping has not ended the sleep.  The C library's own waits have that gap as well. */
#define SIGNAL_RECHECK_NS (UINT64_C(50) * PLUS_NS_PER_MS)

/* This many waits are ended in one go under the guard. */
#define WAKE_BATCH 16u

/* A relay is for threads that will get the GIL soon.  A thread that has used this much more of the GIL than it has
 * rested since queues behind CPU-bound threads, and would hold up the threads behind it in the relay. */
#define RESTED_NS (UINT64_C(1) * PLUS_NS_PER_MS)

/* Incremented by each thread that has given up the GIL to wait in this room. */
static struct {
    _Alignas(PLUS_CACHE_LINE) _Atomic uint32_t count; /* alone in its cache line, as in spin.c */
} parked;

/* The calling thread's waiters that stay queued while signal handlers run. */
static _Thread_local struct plus_waiter *innermost;

/* The processor from which the calling thread's last wait was ended; -1: not known.  It is the thread's own processor
 * while another process computes on the others. */
static _Thread_local int answered_from PLUS_FAST_TLS = -1;

void
plus_waitq_init(struct plus_waitq *queue)
{
    memset(queue, 0, sizeof(*queue));
    atomic_init(&queue->guard, plus_fork_generation << 1);
    queue->spin.credit = PLUS_SPIN_NEW;
}

static void
lock_slowly(struct plus_waitq *queue)
{
    uint32_t open = plus_fork_generation << 1;

    for (unsigned round = 0;; round++) {
        uint32_t seen = atomic_load_explicit(&queue->guard, memory_order_relaxed);

        if (seen == (open | 1u)) {
            if (round < GUARD_POLLS) {
                plus_cpu_relax();
            }
            else if (round < GUARD_POLLS + GUARD_YIELDS) {
                sched_yield();
            }
            else {
                /* The holder does not run, perhaps because a thread of higher priority polls here. */
                nanosleep(&(struct timespec){.tv_nsec = GUARD_SLEEP_NS}, NULL);
            }
        }
        else if (atomic_compare_exchange_weak_explicit(
                     &queue->guard, &seen, open | 1u, memory_order_acquire, memory_order_relaxed)) {
            if (seen != open) {
                /* Empty the queue of the process that this one was forked from: its waiters are not here. */
                queue->head = queue->tail = NULL;
                atomic_store_explicit(&queue->length, 0, memory_order_relaxed);
                queue->woken = 0;
                atomic_store(&queue->spin.poller, 0);
            }
            return;
        }
    }
}

/* A word and a short poll instead of a mutex: the release is a plain store, which makes the common put or get one
 * locked instruction cheaper. */
void
plus_waitq_lock(struct plus_waitq *queue)
{
    uint32_t open = plus_fork_generation << 1;

    plus_rank_taken(PLUS_RANK_GUARD);
    if (!atomic_compare_exchange_strong_explicit(&queue->guard, &open, open | 1u,
                                                 memory_order_acquire, memory_order_relaxed)) {
        lock_slowly(queue);
    }
}

void
plus_waitq_unlock(struct plus_waitq *queue)
{
    plus_rank_given(PLUS_RANK_GUARD);
    atomic_store_explicit(&queue->guard, plus_fork_generation << 1, memory_order_release);
}

void
plus_waiter_init(struct plus_waiter *waiter, bool heeds_signals)
{
    *waiter = (struct plus_waiter){
        .identity = plus_identity(),
        .heeds_signals = heeds_signals,
        .look_ns = PLUS_FUTEX_NO_DEADLINE,
        .ended_on = -1,
    };
}

/* Called with the guard held, so there is no other writer. */
static void
add_length(struct plus_waitq *queue, uint32_t difference)
{
    atomic_store_explicit(&queue->length, plus_waitq_length(queue) + difference,
                          memory_order_relaxed);
}

/* Links `waiter` behind `before`, or at the head if `before` is NULL. */
static void
link_behind(struct plus_waitq *queue, struct plus_waiter *before, struct plus_waiter *waiter)
{
    struct plus_waiter *after = before != NULL ? before->next : queue->head;

    assert(!waiter->queued);
    waiter->prev = before;
    waiter->next = after;
    *(before != NULL ? &before->next : &queue->head) = waiter;
    *(after != NULL ? &after->prev : &queue->tail) = waiter;
    waiter->queued = true;
    atomic_store_explicit(&waiter->state, PLUS_WAITER_WAITING, memory_order_relaxed);
    add_length(queue, 1u);
    if (!waiter->interrupted) {
        waiter->polled = waiter->caught = waiter->looked = waiter->rechecked = false;
    }
    waiter->interrupted = false;
    if (waiter->start_ns == 0) {
        waiter->start_ns = waiter->counted_ns = plus_now_ns();
        queue->counts.waits++;
    }
}

void
plus_waitq_append(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    link_behind(queue, queue->tail, waiter);
}

void
plus_waitq_prepend(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    link_behind(queue, NULL, waiter);
}

void
plus_waitq_enqueue(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    bool in_vain = waiter->start_ns != 0 && !waiter->interrupted;
    struct plus_waiter *before = in_vain ? NULL : queue->tail;

    while (waiter->interrupted && before != NULL && before->start_ns > waiter->start_ns) {
        before = before->prev;
    }
    link_behind(queue, before, waiter);
}

void
plus_waitq_remove(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    assert(waiter->queued && plus_waitq_length(queue) > 0);
    *(waiter->prev != NULL ? &waiter->prev->next : &queue->head) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &queue->tail) = waiter->prev;
    waiter->queued = false;
    add_length(queue, UINT32_MAX);
}

/* The waiter's identity for the object's spin. */
static uint32_t
poller(const struct plus_waiter *waiter)
{
    return (uint32_t)waiter->identity;
}

_Atomic uint32_t *
plus_waitq_end(struct plus_waitq *queue, struct plus_waiter *waiter, enum plus_waiter_state state)
{
    _Atomic uint32_t *word = &waiter->state;

    plus_waitq_remove(queue, waiter);
    plus_spin_met(&queue->spin, poller(waiter));
    waiter->ended_on = sched_getcpu();
    waiter->parked_at_wake = atomic_load_explicit(&parked.count, memory_order_relaxed);
    /* The node may be gone after this. */
    bool asleep = atomic_exchange_explicit(word, state, memory_order_acq_rel) == PLUS_WAITER_ASLEEP;
    return asleep ? word : NULL;
}

void
plus_waitq_rouse(_Atomic uint32_t *word)
{
    if (word != NULL) {
        plus_futex_wake(word, 1);
    }
}

static bool
is_rested(const struct plus_waiter *waiter, uint64_t now)
{
    return atomic_load_explicit(&waiter->rested_ns, memory_order_relaxed) <= now + RESTED_NS;
}

/* Ends the wait of the first waiter, with the guard held.  Returns the word of a sleeper that is to be roused at once,
 * or NULL. */
static _Atomic uint32_t *
wake_first(struct plus_waitq *queue, struct plus_relay *relay, uint64_t now)
{
    struct plus_waiter *first = queue->head;

    if (relay == NULL || !is_rested(first, now)) {
        return plus_waitq_end(queue, first, PLUS_WAITER_WOKEN);
    }
    plus_relay_expect(relay);
    first->relay = relay;
    _Atomic uint32_t *word = plus_waitq_end(queue, first, PLUS_WAITER_WOKEN);
    if (word != NULL) {
        plus_relay_add(relay, word);
    }
    return NULL;
}

/* Returns how many of `count` are left to wake; 0 if nobody waits any more. */
static uint32_t
wake_some(struct plus_waitq *queue, uint32_t count, struct plus_relay *relay, uint64_t now)
{
    _Atomic uint32_t *sleepers[WAKE_BATCH];
    uint32_t ended = 0;

    plus_waitq_lock(queue);
    while (ended < count && ended < WAKE_BATCH && queue->head != NULL) {
        sleepers[ended++] = wake_first(queue, relay, now);
    }
    plus_waitq_unlock(queue);
    for (uint32_t i = 0; i < ended; i++) {
        plus_waitq_rouse(sleepers[i]);
    }
    return ended == WAKE_BATCH ? count - ended : 0;
}

void
plus_waitq_wake(struct plus_waitq *queue, uint32_t count)
{
    struct plus_relay *relay = NULL;
    uint64_t now = 0;

    if (count > PLUS_RELAY_WIDTH) {
        plus_waitq_lock(queue);
        uint32_t length = plus_waitq_length(queue);
        plus_waitq_unlock(queue);
        count = count < length ? count : length; /* so waiters that come later are not woken */
    }
    /* The interpreter's own GIL lets a CPU-bound thread run for an interval beside each thread that arrives, so
     * without our scheduler all of them had better queue at once. */
    if (count > PLUS_RELAY_WIDTH && plus_sched_running()) {
        now = plus_now_ns();
        relay = plus_relay_new(count);
    }
    while (count > 0) {
        count = wake_some(queue, count, relay, now);
    }
    if (relay != NULL) {
        plus_relay_start(relay);
    }
}

bool
plus_waitq_starves(const struct plus_waitq *queue, uint64_t now_ns)
{
    return queue->head != NULL && now_ns - queue->head->start_ns >= PLUS_STARVING_NS &&
           now_ns - queue->handed_over_ns >= PLUS_STARVING_NS;
}

static bool
is_ended(const struct plus_waiter *waiter)
{
    return atomic_load_explicit(&waiter->state, memory_order_acquire) >= PLUS_WAITER_WOKEN;
}

static bool
await_parking(const struct plus_waiter *waiter, uint64_t limit_ns)
{
    uint64_t start = plus_now_ns();

    while (atomic_load_explicit(&parked.count, memory_order_relaxed) == waiter->parked_at_wake) {
        if (plus_now_ns() - start >= limit_ns) {
            return false;
        }
        plus_cpu_relax();
    }
    return true;
}

/* Used on one processor: yields it, so that the thread that is to end the wait can run.  Returns whether the wait has
 * ended. */
static bool
yield_state(const struct plus_waiter *waiter)
{
    for (unsigned i = 0; i < PLUS_SPIN_YIELDS && !is_ended(waiter); i++) {
        sched_yield();
    }
    return is_ended(waiter);
}

/* Whether the last wait was ended from this processor; false if the kernel does not tell. */
static bool
answered_here(void)
{
    return answered_from >= 0 && answered_from == sched_getcpu();
}

static enum plus_spin_way
choose_way(struct plus_waitq *queue, const struct plus_waiter *waiter, uint64_t now_ns)
{
    plus_waitq_lock(queue);
    enum plus_spin_way way =
        is_ended(waiter) ? PLUS_SPIN_NOT
                         : plus_spin_begins(&queue->spin, poller(waiter), answered_here(), now_ns);
    plus_waitq_unlock(queue);
    return way;
}

static void
spin_first(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    uint64_t now = plus_now_ns();
    uint64_t limit_ns = PLUS_SPIN_NS;

    enum plus_spin_way way = choose_way(queue, waiter, now);
    if (way == PLUS_SPIN_FULL && plus_spin_await_place(now)) {
        way = choose_way(queue, waiter, now);
    }
    if (way == PLUS_SPIN_NOT || way == PLUS_SPIN_FULL) {
        return;
    }
    if (deadline_ns < now + limit_ns) {
        limit_ns = deadline_ns > now ? deadline_ns - now : 0;
    }
    waiter->polled = true;
    waiter->caught = way == PLUS_SPIN_POLL
                         ? plus_futex_poll(&waiter->state, PLUS_WAITER_WAITING, limit_ns)
                         : yield_state(waiter);
    plus_spin_ended(&queue->spin, poller(waiter), way);
    if (waiter->caught && way == PLUS_SPIN_POLL) {
        /* The waker still holds the GIL, and is mostly about to wait itself.  Asking for the GIL now would mean
         * sleeping in the kernel until then, so the waker gets a moment.  If it produces more things instead, it
         * gets a longer moment: then each switch of threads finds something to take. */
        uint32_t surplus = atomic_load_explicit(&queue->surplus, memory_order_relaxed);

        if (!await_parking(waiter, PARK_LIMIT_NS) &&
            atomic_load_explicit(&queue->surplus, memory_order_relaxed) != surplus) {
            await_parking(waiter, STREAM_LIMIT_NS);
        }
    }
}

/* Counts the time up to now; returns how long the waiter has waited. */
static uint64_t
count_time(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    struct plus_wait_counts *counts = &queue->counts;
    uint64_t now = plus_now_ns();
    uint64_t waited_ns = now - waiter->start_ns;

    counts->total_ns += now - waiter->counted_ns;
    waiter->counted_ns = now;
    if (waited_ns > counts->longest_ns) {
        counts->longest_ns = waited_ns;
    }
    return waited_ns;
}

/* Ends the wait on the waiter's side: a waiter that is not ended by now takes itself out. */
static enum plus_wait_result
finish(struct plus_waitq *queue, struct plus_waiter *waiter, bool timed_out)
{
    enum plus_wait_result result = PLUS_WAIT_TIMED_OUT;

    plus_waitq_lock(queue);
    if (is_ended(waiter)) {
        result = atomic_load_explicit(&waiter->state, memory_order_acquire) == PLUS_WAITER_GRANTED
                     ? PLUS_WAIT_GRANTED
                     : PLUS_WAIT_WOKEN;
        answered_from = waiter->ended_on;
    }
    else {
        plus_waitq_remove(queue, waiter);
        queue->counts.timeouts += timed_out;
    }
    uint64_t waited_ns = count_time(queue, waiter);

    queue->counts.spins += waiter->polled;
    queue->counts.spins_paid += waiter->caught;
    plus_spin_learn(&queue->spin, waiter->polled, waiter->caught, waited_ns);
    plus_waitq_unlock(queue);
    plus_sched_take_back(waiter->owner, &waiter->lent);
    return result;
}

/* Sleeps once.  Returns true if the deadline has passed. */
static bool
sleep_once(struct plus_waiter *waiter, uint64_t deadline_ns)
{
    uint32_t waiting = PLUS_WAITER_WAITING;
    uint32_t asleep = PLUS_WAITER_ASLEEP;

    if (!atomic_compare_exchange_strong(&waiter->state, &waiting, PLUS_WAITER_ASLEEP)) {
        return false;
    }
    bool timed_out =
        plus_futex_wait(&waiter->state, PLUS_WAITER_ASLEEP, deadline_ns) == PLUS_FUTEX_TIMED_OUT;
    /* This thread is awake now, so ending the wait from here on needs no system call. */
    atomic_compare_exchange_strong(&waiter->state, &asleep, PLUS_WAITER_WAITING);
    return timed_out;
}

/* Sleeps until the deadline at most.  Returns true if the caller, which runs signal handlers, has to check. */
static bool
sleep_heeding(struct plus_waiter *waiter, uint64_t deadline_ns, bool *timed_out)
{
    uint64_t recheck_ns = plus_now_ns() + SIGNAL_RECHECK_NS;
    bool rechecks = !waiter->rechecked && recheck_ns < deadline_ns;
    bool passed = sleep_once(waiter, rechecks ? recheck_ns : deadline_ns);

    waiter->rechecked = rechecks && passed; /* a signal starts the recheck time again */
    *timed_out = passed && !rechecks;
    return !*timed_out && !is_ended(waiter);
}

enum plus_wait_result
plus_waiter_wait_nogil(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns)
{
    bool timed_out = deadline_ns == 0;

    atomic_fetch_add_explicit(&parked.count, 1, memory_order_relaxed);
    if (!waiter->looked && !timed_out) {
        spin_first(queue, waiter, deadline_ns);
    }
    while (!is_ended(waiter) && !timed_out) {
        bool look = waiter->heeds_signals && (waiter->polled && !waiter->looked);

        waiter->looked = true;
        if (look) {
            return PLUS_WAIT_SIGNAL;
        }
        /* Lend the level to the owner, and note rested_ns.  Called before a sleep only: most waits end earlier,
         * without that cost. */
        if (waiter->owner != NULL && !waiter->lent.lends) {
            plus_sched_lend(waiter->owner, &waiter->lent);
        }
        atomic_store_explicit(&waiter->rested_ns, plus_now_ns() + plus_sched_used_ns(),
                              memory_order_relaxed);
        bool looks = waiter->look_ns < deadline_ns;
        uint64_t until_ns = looks ? waiter->look_ns : deadline_ns;
        if (!waiter->heeds_signals) {
            timed_out = sleep_once(waiter, until_ns);
        }
        else if (sleep_heeding(waiter, until_ns, &timed_out)) {
            return PLUS_WAIT_SIGNAL;
        }
        if (timed_out && looks) {
            return PLUS_WAIT_SIGNAL;
        }
    }
    return finish(queue, waiter, timed_out);
}

void
plus_waiter_leave(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    waiter->heard = finish(queue, waiter, false) == PLUS_WAIT_WOKEN;
    plus_waiter_arrived(waiter);
}

/* A staying waiter gets into no relay while handlers run: the waiters behind it would wait for them. */
void
plus_waiter_stay(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    atomic_store_explicit(&waiter->rested_ns, UINT64_MAX, memory_order_relaxed);
    waiter->queue = queue;
    waiter->outer = innermost;
    innermost = waiter;
}

enum plus_wait_result
plus_waiter_interrupt(struct plus_waitq *queue, struct plus_waiter *waiter)
{
    plus_waitq_lock(queue);
    bool ended = is_ended(waiter);
    if (!ended && waiter->stays) {
        plus_waiter_stay(queue, waiter);
    }
    else if (!ended) {
        plus_waitq_remove(queue, waiter);
        waiter->interrupted = true;
        count_time(queue, waiter);
    }
    plus_waitq_unlock(queue);
    if (ended) {
        enum plus_wait_result result = finish(queue, waiter, false);

        plus_waiter_arrived(waiter);
        return result;
    }
    plus_sched_take_back(waiter->owner, &waiter->lent);
    return PLUS_WAIT_SIGNAL;
}

void
plus_waiter_resumed(struct plus_waiter *waiter)
{
    if (waiter->stays) {
        assert(innermost == waiter);
        innermost = waiter->outer;
    }
}

/* Taking the guard empties a queue that another generation left. */
void
plus_waitq_atfork_child(void)
{
    for (struct plus_waiter *waiter = innermost; waiter != NULL; waiter = waiter->outer) {
        plus_waitq_lock(waiter->queue);
        if (!is_ended(waiter)) {
            waiter->queued = false;
            plus_waitq_prepend(waiter->queue, waiter); /* the outermost came first */
        }
        plus_waitq_unlock(waiter->queue);
    }
}

struct plus_wait_counts
plus_waitq_counts(struct plus_waitq *queue)
{
    plus_waitq_lock(queue);
    struct plus_wait_counts counts = queue->counts;
    plus_waitq_unlock(queue);
    return counts;
}
