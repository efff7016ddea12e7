/* The protocol between those who wait for the GIL, the one that has it, and the interpreter.
 *
 * The interpreter calls us at the four places that sched.h shows.  A thread is, by its record and by S:
 *
 *                  plus_sched_wait              grant_next             plus_sched_acquired
 *        away ----------------------> queued -------------> granted -----------------------> holder
 *          ^                         |     ^                   |                               |
 *          |            asks, or     |     |    old ticket     |                               |
 *          |      is sent back: 0 or |     +-------------------+ found it taken                |
 *          |            ETIMEDOUT    v                                                         |
 *          |                  in the interpreter, and back at once                             |
 *          +---------------------------- plus_sched_released ----------------------------------+
 *
 *   queued    in S.ready, level by level; asleep or polling on `parking`, its own futex word.
 *   granted   taken out of the queue, woken, and not there yet (S.granted).  It owns nothing: the GIL is free
 *             meanwhile, and whoever comes first takes it.  One that finds it taken comes back with its old ticket, to
 *             its old place.
 *   holder    S.holder.  One that never met another thread is not timed; it goes through the two `alone` functions.
 *
 * Who writes.  All of it is guarded by the GIL's own mutex, in which the interpreter calls us.  It is let go of for
 * sleeping, polling and await_turn(): whoever did that looks at everything again.  The atomics in S say who else reads
 * or writes them.  The registry's lock may be taken inside of the mutex, never the other way round.
 *
 * Parking.  Only the waiter stores WAITING and, by comparing, ASLEEP; only a waker, in the mutex, exchanges in GRANTED
 * or RECHECK.  So a waker sees whether it has to pay for a system call, and a waiter that was told something does not
 * fall asleep.
 *
 * Asking.  That the holder is to give the GIL up can be said by the interpreter alone: plus_sched_wait() returns
 * ETIMEDOUT.  It heeds that only in the first round of a wait (wait_is_over); later rounds return 0, as woken for
 * nothing, and the interpreter calls again at once.  `asked` is set from then until the next acquisition: one request is
 * enough for all.  Only one waiter, the warden, has a timer for it, or two (sleep_until).
 *
 * Switching.  Whoever was asked waits, having given the GIL up, until `switch_sequence` has moved: each acquisition
 * moves it, and wakes sleepers if the last holder was asked or hands over.  The sequence that is waited to change was
 * read in switch_mutex, in which acquisitions are, or with the GIL held: so no step is missed.
 * The policy decides (policy.c), the queues remember (ready.c); here it is done.
 *
 * Rejected: handing the GIL over to the thread that is woken: nobody could have it until that one has arrived; a timer
 * or a flag `asked` for each waiter, two pollers, a thread that looks after the waiters (docs/explanation/rejected.md).
 */
#define _GNU_SOURCE
#include "sched.h"

#include "../../_base/process/clock.h"
#include "../../_base/process/cpus.h"
#include "../../_base/process/futex.h"
#include "kernel_slice.h"
#include "loans.h"
#include "ready.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

/* Who waits for a switch looks again this often: a request from before the installation is not known
 * to us, and its waiter is not told. */
#define SWITCH_RECHECK_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* How long the end of an atomic section waits at most for another thread to take the GIL. */
#define HAND_OVER_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* How long the GIL is kept for a thread that was interrupted in its turn. */
#define TURN_WAIT_NS (UINT64_C(2) * PLUS_NS_PER_US)

/* A granted thread that has not arrived after this long is not waited for any more. */
#define GRANT_LIMIT_NS (UINT64_C(2) * PLUS_NS_PER_MS)

/* Written under the GIL's mutex unless said otherwise. */
static struct {
    _Atomic bool running; /* we do the waiting; otherwise libc does, and we only know the holder */
    struct plus_policy policy;
    struct plus_interpreter interpreter;
    _Atomic(pthread_mutex_t *) mutex; /* for who comes without having waited */
    _Atomic uint64_t spin_ns;         /* the policy's, for readers without the mutex */
    struct plus_ready ready;          /* the waiters */

    /* Who wakes to look after the first waiter, so that a crowd costs what two waiters cost: the first has
     * a timer of its own only behind a request, or where one of its last waits was long.  It is the last
     * in the whole order, which is longest in the queue and changes by newcomers, who are awake; one that
     * leaves for good names the next.  NULL: nobody waits.  Cleared without the mutex by a thread that
     * ends. */
    _Atomic(struct plus_thread *) warden;

    struct plus_thread *holder;      /* NULL: free */
    struct plus_thread *last_holder; /* compared, never followed */
    int holder_cpu;
    _Atomic(struct plus_thread *) granted; /* woken to take it, has not arrived; cleared without the
                                              mutex by a thread that ends */
    uint64_t granted_ns;
    unsigned granted_level;
    _Atomic bool granted_polling; /* it was awake when it was granted; read under switch_mutex */

    _Atomic bool asked; /* the holder has been asked; read without the mutex by its owner */
    bool unheard;       /* a request to this holder was not answered in time: everybody asks */
    uint64_t protected_until_ns; /* one that was overtaken for too long may not be asked before */
    enum plus_protection protect_next; /* the thread granted last gets such a run */

    /* Who was asked in its turn, and comes back as soon as another has taken the GIL. */
    _Atomic(struct plus_thread *) returning; /* compared, never followed */
    unsigned returning_level;
    int returning_cpu;

    uint64_t interval_ns; /* the interpreter's switch interval */
    uint64_t slice_ns; /* of a turn: the policy's, or the interpreter's switch interval if longer */

    _Atomic uint32_t switch_sequence; /* futex word: one more with each acquisition */
    bool hands_over;                  /* the holder will wait for the switch though nobody asked */
    bool switch_awaited;              /* the last holder was asked, so it may wait for the switch */
    _Atomic uint32_t switch_sleepers; /* threads asleep on it; written by them */
    _Atomic uint32_t pollers;         /* written by the pollers; at most one polls */

    _Atomic uint64_t abandoned_sections; /* written by threads that end */

    bool many_cpus;
    struct plus_sched_counts counts;
} S;

/* ------------------------------------------------------------------------------------------------
 * Parking: poll shortly, then sleep.
 */

static void
park_nogil(struct plus_thread *self, uint64_t poll_ns, uint64_t deadline_ns)
{
    uint32_t waiting = PLUS_PARK_WAITING;

    if (poll_ns > 0) {
        bool changed = plus_futex_poll(&self->parking, PLUS_PARK_WAITING, poll_ns);
        atomic_fetch_sub(&S.pollers, 1);
        if (changed) {
            return;
        }
    }
    if (!atomic_compare_exchange_strong(&self->parking, &waiting, PLUS_PARK_ASLEEP)) {
        return;
    }
    /* A signal or a stray wake-up ends the sleep early: the caller decides again, no harm done. */
    plus_futex_wait(&self->parking, PLUS_PARK_ASLEEP, deadline_ns);
}

/* Under the mutex, so that the record cannot go away before the system call: the sleeper needs the
 * mutex to get on. */
static bool
unpark(struct plus_thread *thread, enum plus_parking reason)
{
    uint32_t before = atomic_exchange(&thread->parking, reason);

    if (before == PLUS_PARK_ASLEEP) {
        plus_futex_wake(&thread->parking, 1);
    }
    return before == PLUS_PARK_WAITING;
}

/* Polling pays only when the other side runs on another processor right now and will be done soon,
 * and when nobody polls already: two pollers would take both cores from the one who works. */
static uint64_t
poll_budget(const struct plus_decision *decision)
{
    uint32_t none = 0;

    if (!S.many_cpus || !decision->holder_is_brief || S.policy.spin_ns == 0 ||
        S.holder_cpu == sched_getcpu()) {
        return 0;
    }
    return atomic_compare_exchange_strong(&S.pollers, &none, 1) ? S.policy.spin_ns : 0;
}

/* ------------------------------------------------------------------------------------------------
 * Accounts of threads and classes.
 */

static void
returns_to_gil(struct plus_thread *self, uint64_t now)
{
    if (atomic_load_explicit(&S.returning, memory_order_relaxed) == self) {
        atomic_store(&S.returning, NULL);
    }
    uint64_t since = self->released_ns + self->forced_ns;

    if (self->released_ns != 0 && now > since) {
        plus_policy_away(&self->usage, now - since);
        plus_ready_away(self, now - since, S.slice_ns);
    }
    self->released_ns = 0;
    self->forced_ns = 0;
}

static unsigned
level_of(const struct plus_thread *thread, uint64_t held_ns)
{
    unsigned own = plus_policy_level(&thread->usage, held_ns);
    unsigned lent = plus_loans_level(thread);

    return lent < own ? lent : own;
}

static unsigned
holder_level(uint64_t now)
{
    uint64_t since = S.holder->acquired_ns;

    return level_of(S.holder, since != 0 && now > since ? now - since : 0);
}

/* Whether `a` is served before `b`. */
static bool
is_before(const struct plus_thread *a, const struct plus_thread *b)
{
    return a->level != b->level ? a->level < b->level : a->ticket < b->ticket;
}

static void
enqueue(struct plus_thread *self, uint64_t now, bool begins)
{
    struct plus_thread *warden = atomic_load_explicit(&S.warden, memory_order_relaxed);

    self->level = self->signalled ? 0 : level_of(self, 0);
    if (begins) {
        plus_ready_begin_wait(self);
    }
    plus_ready_insert(&S.ready, self);
    self->queued = true;
    /* One that is not queued left to ask, and was ended by the interpreter instead. */
    if (warden == NULL || warden == self || !warden->queued || is_before(warden, self)) {
        atomic_store_explicit(&S.warden, self, memory_order_relaxed);
    }
    if (S.holder != NULL) {
        plus_ready_count(&S.ready, now, holder_level(now));
    }
}

/* The warden's place is left to it: it comes again at once. */
static void
leave_to_ask(struct plus_thread *thread)
{
    plus_ready_remove(&S.ready, thread);
    thread->queued = false;
}

/* Who is not in the queue cannot look after it. */
static void
resign(const struct plus_thread *thread)
{
    if (atomic_load_explicit(&S.warden, memory_order_relaxed) != thread) {
        return;
    }
    struct plus_thread *last = plus_ready_last(&S.ready);

    atomic_store_explicit(&S.warden, last, memory_order_relaxed);
    if (last != NULL) {
        unpark(last, PLUS_PARK_RECHECK); /* it has no timer yet */
    }
}

static void
dequeue(struct plus_thread *thread)
{
    leave_to_ask(thread);
    resign(thread);
}

/* ------------------------------------------------------------------------------------------------
 * Waiting.
 */

static struct plus_decision
decide(const struct plus_thread *waiter, uint64_t interval_ns, uint64_t now)
{
    struct plus_situation situation = {
        .now_ns = now,
        .interval_ns = interval_ns,
        .slice_ns = S.slice_ns,
        .self = waiter,
        .self_is_first = plus_ready_first(&S.ready) == waiter,
        .holder = S.holder,
        .asked = atomic_load(&S.asked),
        .protected_until_ns = S.protected_until_ns,
    };

    if (S.holder != NULL) {
        if (S.holder->acquired_ns == 0) {
            S.holder->acquired_ns = now; /* it took the GIL while it was the only thread */
        }
        situation.holder_level = holder_level(now);
        situation.holder_atomic = atomic_load(&S.holder->atomic_depth) > 0;
    }
    return plus_policy_decide(&S.policy, &situation);
}

/* Until when a waiter that need not ask now may sleep.  The warden looks after the first waiter, which
 * sleeps without a timer, and wakes it when it is time to ask. */
static uint64_t
sleep_until(struct plus_thread *self, const struct plus_decision *own, uint64_t interval_ns,
            uint64_t now)
{
    struct plus_thread *first = plus_ready_first(&S.ready);

    if (self == first) {
        bool warden = atomic_load_explicit(&S.warden, memory_order_relaxed) == self;
        return warden || own->asked || self->impatience > 0 ? own->deadline_ns
                                                            : PLUS_FUTEX_NO_DEADLINE;
    }
    if (atomic_load_explicit(&S.warden, memory_order_relaxed) != self) {
        return PLUS_FUTEX_NO_DEADLINE;
    }
    struct plus_decision decision = decide(first, interval_ns, now);

    if (decision.ask || decision.wants || decision.asked || S.interpreter.is_ending()) {
        unpark(first, PLUS_PARK_RECHECK);
    }
    return decision.ask ? now + interval_ns : decision.deadline_ns;
}

/* The holder stores its depth and then reads `asked`; we store `asked` and then read the depth.  Both
 * are sequentially consistent, so at least one of the two sees the other.  Only a request of our own is
 * withdrawn: an earlier one found the holder outside a section, and the interpreter has it, so the
 * holder, which is entering one now, must still read it. */
static bool
ask_holder(void)
{
    bool asked_before = atomic_exchange(&S.asked, true);

    if (S.holder == NULL || atomic_load(&S.holder->atomic_depth) == 0) {
        return true;
    }
    atomic_store(&S.holder->atomic_wanted, true);
    if (atomic_load(&S.holder->atomic_depth) == 0) { /* it left before it could see that */
        return true;
    }
    if (!asked_before) {
        atomic_store(&S.asked, false);
    }
    return false;
}

static void
wake_all_but(const struct plus_thread *self)
{
    for (unsigned level = 0; level < PLUS_LEVELS; level++) {
        for (struct plus_thread *t = S.ready.levels[level].head; t != NULL; t = t->next) {
            if (t != self) {
                unpark(t, PLUS_PARK_RECHECK);
            }
        }
    }
}

/* A request that was not answered within an interval.  Mostly the holder has no core now, or does not
 * look, and asking once more is all that can be done.  But where the request may have gone to the
 * waiter's own sub-interpreter instead of the holder's, only a waiter of the holder's interpreter can
 * reach it.  So everybody asks once then, as they all do in the interpreter's own scheduling. */
static void
ask_again(struct plus_thread *self)
{
    S.counts.repeated_requests++;
    if (!S.interpreter.may_mishear_requests()) {
        return;
    }
    S.unheard = true;
    self->joined = atomic_load(&S.switch_sequence);
    wake_all_but(self);
}

/* One look at the situation.  Returns true when the wait is over, with what to tell the interpreter
 * in *result.
 *
 * The interpreter heeds ETIMEDOUT only if nobody has switched since its wait began, so a request is
 * made in the first round only, before the mutex was let go of.  A later round goes back to the
 * interpreter, as if woken for nothing, and comes again with its old ticket. */
static bool
wait_is_over(struct plus_thread *self, const struct plus_decision *decision, bool first,
             int *result)
{
    bool ask = decision->ask;

    *result = 0;
    if (decision->wants) {
        /* The holder stores its depth and then reads `wanted`: it, or we, see the other's. */
        atomic_store(&S.holder->atomic_wanted, true);
        ask = atomic_load(&S.holder->atomic_depth) == 0 && !atomic_load(&S.asked);
    }
    bool joins = S.unheard && self->joined != atomic_load(&S.switch_sequence);
    if (ask || self->asks_again || joins) {
        if (!first) {
            return true;
        }
        if (ask_holder()) {
            if (self->asks_again && !S.unheard) {
                ask_again(self);
            }
            self->asks_again = false;
            self->joined = atomic_load(&S.switch_sequence);
            *result = ETIMEDOUT;
            S.counts.requests++;
            return true;
        }
    }
    if (S.interpreter.is_ending()) {
        /* A thread that has to end learns it from a time-out; one a round, so that nobody is kept
         * from the mutex. */
        if (first && self->ending_seen) {
            *result = ETIMEDOUT;
            atomic_store(&S.asked, true);
        }
        self->ending_seen = !first;
        return *result != 0 || !first;
    }
    return false;
}

/* A signal that ends the main thread's sleep has a handler to be run by it: it is served first. */
static bool
has_signal(const struct plus_thread *self, uint64_t now, uint64_t deadline_ns)
{
    return now < deadline_ns && atomic_load(&self->parking) == PLUS_PARK_ASLEEP &&
           self->native_id == getpid();
}

/* The holder usually gives the GIL up by itself within the polling time: it need not be asked, which
 * would make it wait for the switch.  False where nobody can poll. */
static bool
polls_it_out(struct plus_thread *self, pthread_mutex_t *mutex, const struct plus_decision *decision)
{
    uint64_t poll_ns = poll_budget(decision);

    if (poll_ns == 0) {
        return false;
    }
    atomic_store(&self->parking, PLUS_PARK_WAITING);
    pthread_mutex_unlock(mutex);
    plus_futex_poll(&self->parking, PLUS_PARK_WAITING, poll_ns);
    atomic_fetch_sub(&S.pollers, 1);
    pthread_mutex_lock(mutex);
    return true;
}

int
plus_sched_wait(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    struct plus_thread *self = plus_thread_self();
    uint64_t now = plus_now_ns();
    uint64_t interval_ns = deadline_ns > now ? deadline_ns - now : PLUS_NS_PER_US;
    bool begins = self->wait_start_ns == 0;
    int result;

    if (begins) {
        returns_to_gil(self, now);
        self->wait_start_ns = now;
    }
    if (atomic_load(&S.granted) == self) {
        atomic_store(&S.granted, NULL);
    }
    atomic_store_explicit(&S.mutex, mutex, memory_order_relaxed);
    S.many_cpus = plus_usable_cpus(now) > 1u;
    S.interval_ns = interval_ns;
    S.slice_ns = S.policy.slice_ns > interval_ns ? S.policy.slice_ns : interval_ns;
    enqueue(self, now, begins);
    for (bool first = true; S.running; first = false) {
        struct plus_decision decision = decide(self, interval_ns, now);

        if (decision.ask && decision.holder_is_chatty && first &&
            polls_it_out(self, mutex, &decision)) {
            now = plus_now_ns();
            if (!self->queued) {
                self->missed = true;
                return 0;
            }
            continue;
        }
        if (wait_is_over(self, &decision, first, &result)) {
            leave_to_ask(self);
            if (S.interpreter.is_ending()) {
                resign(self); /* it may not come back */
            }
            S.counts.immediate_requests += result == ETIMEDOUT && begins;
            return result;
        }
        atomic_store(&self->parking, PLUS_PARK_WAITING);
        uint64_t until_ns = sleep_until(self, &decision, interval_ns, now);
        uint64_t poll_ns = poll_budget(&decision);
        pthread_mutex_unlock(mutex);
        park_nogil(self, poll_ns, until_ns);
        pthread_mutex_lock(mutex);
        now = plus_now_ns();
        if (now - self->wait_start_ns > PLUS_LIGHT_NS) {
            self->impatience = PLUS_IMPATIENCE;
        }
        if (!self->queued) {
            self->missed = true; /* until it has really taken it */
            return 0;            /* granted */
        }
        if (has_signal(self, now, until_ns)) {
            self->signalled = true;
            leave_to_ask(self);
            self->ticket = 0;
            enqueue(self, now, false);
        }
        self->asks_again = decision.asked && now >= decision.deadline_ns;
    }
    dequeue(self);
    return 0;
}

bool
plus_sched_may_ask(void)
{
    return ask_holder();
}

void
plus_sched_await_switch(pthread_mutex_t *switch_mutex)
{
    /* Acquisitions happen under switch_mutex too, so the sequence cannot have moved since the
     * interpreter saw that nobody took the GIL yet. */
    uint32_t sequence = atomic_load(&S.switch_sequence);
    uint64_t start = plus_now_ns();
    struct plus_thread *self = plus_thread_self();

    pthread_mutex_unlock(switch_mutex);
    if (!atomic_load(&S.granted_polling) ||
        !plus_futex_poll(&S.switch_sequence, sequence, atomic_load(&S.spin_ns))) {
        atomic_fetch_add(&S.switch_sleepers, 1);
        while (atomic_load(&S.switch_sequence) == sequence && atomic_load(&S.running)) {
            plus_futex_wait(&S.switch_sequence, sequence, plus_now_ns() + SWITCH_RECHECK_NS);
        }
        atomic_fetch_sub(&S.switch_sleepers, 1);
    }
    pthread_mutex_lock(switch_mutex);
    self->forced_ns += plus_now_ns() - start; /* this was no absence */
}

/* ------------------------------------------------------------------------------------------------
 * Taking and giving up.
 */

static void
end_wait(struct plus_thread *self, uint64_t now)
{
    uint64_t waited = now - self->wait_start_ns;

    self->wait_ns += waited;
    self->waits++;
    plus_histogram_add(&S.counts.waits[plus_policy_class(self->level)], waited);
    plus_policy_waited(&self->usage, waited);
    self->wait_start_ns = 0;
    self->asks_again = false;
    self->missed = false;
    self->signalled = false;
    if (waited <= PLUS_LIGHT_NS && self->impatience > 0) {
        self->impatience--;
    }
}

static void
begin_hold(struct plus_thread *self, uint64_t now)
{
    self->level = level_of(self, 0);
    self->acquired_ns = now;
    S.holder_cpu = sched_getcpu();
    if (S.protect_next != PLUS_UNPROTECTED) {
        S.protected_until_ns = now + plus_ready_protected_ns(&S.policy, S.protect_next);
        S.counts.protected_runs += S.protect_next == PLUS_FOR_HEAVIER;
        S.protect_next = PLUS_UNPROTECTED;
    }
    plus_ready_begin_turn(&S.ready, self);
    if (S.ready.occupied == 0) {
        return;
    }
    plus_ready_count(&S.ready, now, self->level);
    /* It has it although a lighter thread waits, or one whose turn it is: nobody has to have a timer for that
     * moment, the first is woken now and asks. */
    struct plus_thread *first = plus_ready_first(&S.ready);

    if (first != NULL &&
        (first->level < self->level ||
         (first->level > 0 && first->level == self->level && first->ticket < self->ticket))) {
        unpark(first, PLUS_PARK_RECHECK);
    }
}

/* Nearly every acquisition follows a release that nobody had asked for: those spare the fence that
 * orders the sequence before the look at the sleepers. */
static void
tell_switch_waiters(void)
{
    uint32_t sequence = atomic_load_explicit(&S.switch_sequence, memory_order_relaxed);

    atomic_store_explicit(&S.switch_sequence, sequence + 1u, memory_order_release);
    if (!S.switch_awaited) {
        return;
    }
    S.switch_awaited = false;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&S.switch_sleepers) > 0) {
        plus_futex_wake(&S.switch_sequence, INT32_MAX);
    }
}

/* The only thread that there is has no one to tell, and is not timed: single-threaded programs pay
 * next to nothing. */
bool
plus_sched_acquired_alone(void)
{
    struct plus_thread *self = plus_thread_if_single();

    if (self == NULL || S.last_holder != self ||
        atomic_load_explicit(&S.asked, memory_order_relaxed)) {
        return false;
    }
    S.holder = self;
    self->acquired_ns = 0; /* a second thread that comes to wait begins to time the hold */
    return true;
}

bool
plus_sched_released_alone(void)
{
    struct plus_thread *self = S.holder;

    if (self == NULL || self->acquired_ns != 0 || self != plus_thread_if_single()) {
        return false;
    }
    S.holder = NULL;
    return true;
}

void
plus_sched_acquired(void)
{
    struct plus_thread *self = plus_thread_self();

    if (S.last_holder != self) {
        S.counts.switches++;
        self->switches++;
    }
    S.last_holder = self;
    S.holder = self;
    if (atomic_load_explicit(&S.asked, memory_order_relaxed)) {
        atomic_store(&S.asked, false);
        S.unheard = false;
    }
    if (S.running && (plus_threads_count() > 1u || self->wait_start_ns != 0)) {
        uint64_t now = plus_now_ns();

        if (atomic_load_explicit(&S.granted, memory_order_relaxed) == self) {
            atomic_store(&S.granted, NULL);
        }
        resign(self); /* it left the queue to ask, and found the GIL free */
        returns_to_gil(self, now);
        if (self->wait_start_ns != 0) {
            end_wait(self, now);
        }
        begin_hold(self, now);
    }
    tell_switch_waiters();
}

/* The thread that a lighter one interrupted is awake on another processor and back within a
 * microsecond; waking the next in turn instead costs a system call and a change of threads, at each
 * request of each lighter thread.  So it gets that microsecond.  It may also have been on its way to
 * a blocking call: then the next in turn is woken after all. */
static void
await_turn(pthread_mutex_t *mutex)
{
    struct plus_thread *returning = atomic_load(&S.returning);
    const struct plus_thread *first = plus_ready_first(&S.ready);
    uint64_t start;

    if (returning == NULL || !S.many_cpus || S.returning_cpu == S.holder_cpu || first == NULL ||
        first->level < S.returning_level) {
        return;
    }
    pthread_mutex_unlock(mutex);
    start = plus_now_ns();
    while (atomic_load(&S.returning) == returning && plus_now_ns() - start < TURN_WAIT_NS) {
        plus_cpu_relax();
    }
    pthread_mutex_lock(mutex);
    atomic_store(&S.returning, NULL); /* once is enough */
}

static void
grant_next(uint64_t now)
{
    struct plus_thread *on_the_way = atomic_load_explicit(&S.granted, memory_order_relaxed);
    const struct plus_thread *first = plus_ready_first(&S.ready);

    /* Somebody barged in while another was on its way: that one still comes, and wakes nobody
     * else's sleep for nothing; but a lighter waiter does not stand behind it. */
    if (first == NULL || (on_the_way != NULL && now - S.granted_ns < GRANT_LIMIT_NS &&
                          S.granted_level <= first->level)) {
        return;
    }
    struct plus_thread *next = plus_ready_pick(&S.ready, &S.policy, &S.protect_next);

    dequeue(next);
    atomic_store(&S.granted, next);
    S.granted_ns = now;
    S.granted_level = next->level;
    atomic_store(&S.granted_polling, unpark(next, PLUS_PARK_GRANTED));
}

static void
give_kernel_slice_back(struct plus_thread *thread, void *unused)
{
    (void)unused;
    thread->kernel_slice_asked = false;
    if (thread->kernel_slice_ns != 0) {
        plus_kernel_slice_give_back(thread->native_id, thread->kernel_slice_ns);
        thread->kernel_slice_ns = 0;
    }
}

/* A job had better not keep a handler from the core that the kernel chose for both. */
static void
set_kernel_slice(struct plus_thread *self, unsigned level)
{
    if (!self->kernel_slice_asked && level == PLUS_LEVELS - 1u) {
        self->kernel_slice_asked = true;
        self->kernel_slice_ns = plus_kernel_slice_lengthen(0);
    }
    else if (self->kernel_slice_asked && plus_policy_class(level) == PLUS_INTERACTIVE) {
        give_kernel_slice_back(self, NULL);
    }
}

static void
end_hold(struct plus_thread *self, uint64_t now, bool asked)
{
    uint64_t hold = now - self->acquired_ns;
    unsigned level = plus_policy_level(&self->usage, hold);

    self->acquired_ns = 0;
    self->released_ns = now;
    self->hold_ns += hold;
    plus_histogram_add(&S.counts.holds[plus_policy_class(level)], hold);
    plus_ready_held(&S.ready, &S.policy, now, level, hold);
    plus_policy_held(&self->usage, hold, asked);
    uint64_t slice = plus_policy_slice_ns(level, S.slice_ns, S.interval_ns);
    plus_ready_end_turn(self, hold, S.protected_until_ns != 0 ? 0 : slice);
    atomic_store(&S.returning, asked && self->ticket != 0 ? self : NULL);
    S.returning_level = level;
    S.returning_cpu = S.holder_cpu;
    set_kernel_slice(self, level);
}

void
plus_sched_released(pthread_mutex_t *mutex)
{
    struct plus_thread *self = S.holder;

    bool asked = atomic_load_explicit(&S.asked, memory_order_relaxed);

    S.holder = NULL;
    S.switch_awaited = asked || S.hands_over;
    S.hands_over = false;
    if (!S.running || self == NULL) {
        return;
    }
    if (self->acquired_ns == 0 && S.ready.occupied == 0) {
        return; /* the only thread, not timed */
    }
    uint64_t now = plus_now_ns();

    S.counts.forced_switches += asked;
    if (self->acquired_ns != 0) {
        end_hold(self, now, asked);
    }
    S.protected_until_ns = 0;
    if (!asked) {
        await_turn(mutex);
    }
    if (S.holder == NULL) {
        grant_next(plus_now_ns());
    }
}

uint64_t
plus_sched_used_ns(void)
{
    const struct plus_thread *self = plus_thread_if_known();

    return self != NULL ? self->usage.account_ns : 0;
}

/* ------------------------------------------------------------------------------------------------
 * Priority inheritance.
 *
 * A lender stores the loan and then reads the owner's word again; the owner changes its word and then
 * reads loan_count.  Both are sequentially consistent, so at least one of the two sees the other: no loan
 * outlives the owner's release.
 */

/* A chain of owners that wait for each other's things is followed so far, and a circle no farther. */
#define CHAIN_LIMIT 8u

struct lending {
    const _Atomic uint64_t *thing;
    unsigned level;
    const _Atomic uint64_t *next; /* what the owner waits for itself */
    bool is_first;                /* of the chain: the lender's own loan */
    uint64_t lent_to;             /* whom that went to; 0: nobody */
};

static void
lend_to(struct plus_thread *owner, void *argument)
{
    struct lending *lending = argument;

    /* Also where it changes nothing now: the owner may compute for long with the thing. */
    if (!(lending->is_first ? plus_loans_add(owner, lending->thing, lending->level)
                            : plus_loans_raise(owner, lending->thing, lending->level))) {
        return;
    }
    if (lending->is_first && atomic_load(lending->thing) != owner->serial) {
        plus_loans_take_back(owner, lending->thing); /* it let go meanwhile */
        return;
    }
    if (lending->is_first) {
        lending->lent_to = owner->serial;
    }
    lending->next = owner->waits_for;
    unsigned level = level_of(owner, 0);
    if (owner->queued && level < owner->level) {
        plus_ready_remove(&S.ready, owner);
        owner->level = level;
        plus_ready_insert(&S.ready, owner);
        if (plus_ready_first(&S.ready) == owner) {
            unpark(owner, PLUS_PARK_RECHECK); /* it may ask now */
        }
    }
}

void
plus_sched_lend(const _Atomic uint64_t *owner, struct plus_lent *lent)
{
    struct plus_thread *self = plus_thread_if_known();
    uint64_t serial = atomic_load(owner);
    pthread_mutex_t *mutex = atomic_load_explicit(&S.mutex, memory_order_relaxed);

    *lent = (struct plus_lent){0};
    if (self == NULL || serial == 0 || serial == self->serial || mutex == NULL ||
        !atomic_load(&S.running)) {
        return;
    }
    pthread_mutex_lock(mutex);
    unsigned level = level_of(self, 0);
    struct lending lending = {.next = owner, .level = level > 0 ? level : 1u};

    lent->lends = true;
    lent->outer = self->waits_for;
    self->waits_for = owner;
    for (unsigned i = 0; i < CHAIN_LIMIT && lending.next != NULL && serial != 0; i++) {
        lending.thing = lending.next;
        lending.next = NULL;
        lending.is_first = i == 0;
        plus_threads_visit_one(serial, lend_to, &lending);
        serial = lending.next != NULL ? atomic_load(lending.next) : 0;
    }
    lent->to = lending.lent_to;
    pthread_mutex_unlock(mutex);
}

static void
take_back_from(struct plus_thread *thread, void *argument)
{
    plus_loans_take_back(thread, argument);
}

void
plus_sched_take_back(const _Atomic uint64_t *owner, struct plus_lent *lent)
{
    struct plus_thread *self = plus_thread_if_known();
    pthread_mutex_t *mutex = atomic_load_explicit(&S.mutex, memory_order_relaxed);

    if (self == NULL || !lent->lends) {
        return;
    }
    lent->lends = false;
    if (mutex == NULL) {
        self->waits_for = lent->outer; /* a fork left nobody who could read it */
        return;
    }
    pthread_mutex_lock(mutex);
    self->waits_for = lent->outer;
    if (lent->to != 0) {
        plus_threads_visit_one(lent->to, take_back_from, (void *)(uintptr_t)owner);
    }
    pthread_mutex_unlock(mutex);
}

bool
plus_sched_owes(void)
{
    struct plus_thread *self = plus_thread_if_known();

    return self != NULL && atomic_load_explicit(&self->loan_count, memory_order_relaxed) > 0;
}

void
plus_sched_let_go(const _Atomic uint64_t *owner)
{
    struct plus_thread *self = plus_thread_if_known();

    atomic_thread_fence(memory_order_seq_cst);
    if (self == NULL || atomic_load(&self->loan_count) == 0) {
        return;
    }
    pthread_mutex_t *mutex = atomic_load_explicit(&S.mutex, memory_order_relaxed);

    if (mutex != NULL) {
        pthread_mutex_lock(mutex);
        plus_loans_end(self, owner);
        pthread_mutex_unlock(mutex);
    }
}

/* ------------------------------------------------------------------------------------------------
 * Atomic sections.
 */

bool
plus_sched_atomic_enter(struct plus_thread *self)
{
    uint32_t depth = atomic_load_explicit(&self->atomic_depth, memory_order_relaxed);

    atomic_store(&self->atomic_depth, depth + 1u);
    return depth == 0 && atomic_load(&S.asked);
}

bool
plus_sched_atomic_leave(struct plus_thread *self)
{
    uint32_t depth = atomic_load_explicit(&self->atomic_depth, memory_order_relaxed);

    assert(depth > 0);
    atomic_store(&self->atomic_depth, depth - 1u);
    return depth == 1u && atomic_load(&self->atomic_wanted);
}

uint32_t
plus_sched_hand_over_begins(struct plus_thread *self)
{
    atomic_store(&self->atomic_wanted, false);
    S.hands_over = true;
    return atomic_load(&S.switch_sequence);
}

void
plus_sched_hand_over_nogil(uint32_t sequence)
{
    uint64_t deadline = plus_now_ns() + HAND_OVER_NS;

    atomic_fetch_add(&S.switch_sleepers, 1);
    while (atomic_load(&S.switch_sequence) == sequence &&
           plus_futex_wait(&S.switch_sequence, sequence, deadline) == PLUS_FUTEX_WOKEN) {
    }
    atomic_fetch_sub(&S.switch_sleepers, 1);
}

/* ------------------------------------------------------------------------------------------------
 * Beginning and end.
 */

static void
clear_debts(void)
{
    S.protected_until_ns = 0;
    S.protect_next = PLUS_UNPROTECTED;
    S.ready.to_heavier = (struct plus_debt){0};
    S.ready.to_handlers = (struct plus_debt){0};
    atomic_store(&S.returning, NULL);
}

/* What a record still says of an earlier run of the scheduler. */
static void
reset_waiting(struct plus_thread *thread, void *argument)
{
    (void)argument;
    thread->missed = false;
    thread->signalled = false;
    thread->asks_again = false;
    if (thread->queued) { /* it was sent back, and has not got so far */
        thread->wait_start_ns = plus_now_ns();
        return;
    }
    thread->ticket = 0;
    thread->turn_used_ns = 0;
    thread->wait_start_ns = 0;
    thread->acquired_ns = 0;
    thread->released_ns = 0;
}

static void
note_holder(void)
{
    struct plus_thread *self = plus_thread_self();

    S.holder = self;
    S.last_holder = self;
}

/* Whether the holder was asked before, only the interpreter knows: its first section gives the GIL up
 * once, as if it had been. */
void
plus_sched_track(void)
{
    note_holder();
    atomic_store(&S.asked, true);
}

void
plus_sched_start(const struct plus_policy *policy, const struct plus_interpreter *interpreter)
{
    S.policy = *policy;
    S.slice_ns = policy->slice_ns;
    S.interpreter = *interpreter;
    atomic_store(&S.spin_ns, policy->spin_ns);
    if (S.running) {
        return;
    }
    plus_threads_visit(reset_waiting, NULL);
    note_holder();
    S.running = true;
    /* A waiter that still sleeps in the queue has not seen the stop.  The warden may have taken the GIL meanwhile, and
     * has no timer any more. */
    atomic_store_explicit(&S.warden, plus_ready_last(&S.ready), memory_order_relaxed);
    wake_all_but(NULL);
    S.holder->acquired_ns = plus_now_ns();
    S.many_cpus = plus_usable_cpus(S.holder->acquired_ns) > 1u;
}

void
plus_sched_stop(void)
{
    S.running = false;
    plus_threads_visit(give_kernel_slice_back, NULL);
    wake_all_but(NULL);
    atomic_store(&S.granted, NULL);
    clear_debts();
    /* Whoever waits for a switch looks again: from now on libc tells it. */
    atomic_fetch_add(&S.switch_sequence, 1);
    plus_futex_wake(&S.switch_sequence, INT32_MAX);
}

bool
plus_sched_running(void)
{
    return S.running;
}

void
plus_sched_counts(struct plus_sched_counts *counts)
{
    *counts = S.counts;
}

void
plus_sched_reset_counts(void)
{
    S.counts = (struct plus_sched_counts){0};
}

enum plus_class
plus_sched_class(const struct plus_thread *thread)
{
    uint64_t held = 0;

    if (thread == S.holder && thread->acquired_ns != 0) {
        held = plus_now_ns() - thread->acquired_ns;
    }
    return plus_policy_class(plus_policy_level(&thread->usage, held));
}

void
plus_sched_forget(struct plus_thread *thread)
{
    struct plus_thread *expected = thread;

    atomic_compare_exchange_strong(&S.granted, &expected, NULL);
    expected = thread;
    atomic_compare_exchange_strong(&S.warden, &expected, NULL);
    /* It gave the GIL up already, so nobody waits for its section; that only has to be known. */
    if (atomic_load(&thread->atomic_depth) > 0) {
        atomic_fetch_add(&S.abandoned_sections, 1);
    }
}

uint64_t
plus_sched_abandoned_sections(void)
{
    return atomic_load(&S.abandoned_sections);
}

void
plus_sched_atfork_child(void)
{
    struct plus_thread *self = plus_thread_if_known();

    S.ready = (struct plus_ready){.next_ticket = S.ready.next_ticket};
    atomic_store(&S.warden, NULL);
    atomic_store(&S.mutex, NULL); /* the interpreter makes it anew */
    S.holder = S.holder == self ? self : NULL;
    S.last_holder = S.holder;
    atomic_store(&S.granted, NULL);
    atomic_store(&S.asked, false);
    S.unheard = false;
    S.hands_over = false;
    atomic_store(&S.switch_sleepers, 0);
    atomic_store(&S.pollers, 0);
    clear_debts();
    plus_sched_reset_counts();
    if (self != NULL) {
        self->queued = false;
        self->ticket = 0;
        self->turn_used_ns = 0;
        self->usage = (struct plus_usage){0}; /* a worker begins as anybody does */
        atomic_store(&self->loan_count, 0);
        self->wait_start_ns = 0;
        self->next = NULL;
        self->prev = NULL;
        atomic_store(&self->atomic_wanted, false);
    }
}
