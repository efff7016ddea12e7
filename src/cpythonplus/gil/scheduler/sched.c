/* The protocol between the threads that wait for the GIL, its holder, and the interpreter.
 *
 * The interpreter calls us at the four places that sched.h shows.  Each thread is in one of these states, kept in its
 * record and in S:
 *
 *                  plus_sched_wait              grant_next             plus_sched_acquired
 *        away ----------------------> queued -------------> granted -----------------------> holder
 *          ^                         |     ^                   |                               |
 *          |     sent back: 0 or     |     |    old ticket     |                               |
 *          |        ETIMEDOUT        |     +-------------------+ GIL was taken meanwhile       |
 *          |                         v                                                         |
 *          |             in the interpreter, calls again at once                               |
 *          +---------------------------- plus_sched_released ----------------------------------+
 *
 *   queued    The thread is in S.ready, in the queue of its level; it sleeps or polls on `parking`, its own futex word.
 *   granted   grant_next() took the thread out of the queue and woke it (S.granted); it has not arrived yet.  It owns
 *             nothing: the GIL is free meanwhile, and any thread may take it.  If the granted thread finds the GIL
 *             taken, it queues again with its old ticket, at its old place.
 *   holder    S.holder.  A thread that never met another thread is not timed; it uses the two `alone` functions.
 *
 * Locking.  The interpreter calls us with the GIL's own mutex held; it guards every field.  The mutex is released for
 * sleeping, polling and await_turn(), so the code after each of these reads the state again.  Comments at the atomics
 * in S name their other readers and writers.  The registry's lock may be taken inside the mutex, never the other way
 * round.
 *
 * Parking.  Only the waiter stores WAITING and, by compare-and-swap, ASLEEP; only a waker, under the mutex, exchanges
 * in GRANTED or RECHECK.  So the waker sees whether it needs the system call, and a waiter that was already woken does
 * not fall asleep.
 *
 * Asking.  Only the interpreter can request that the holder drops the GIL; plus_sched_wait() makes it do so by
 * returning ETIMEDOUT.  The interpreter heeds that only in the first round of a wait (wait_is_over); later rounds
 * return 0 like a spurious wake-up, and the interpreter calls again at once.  `asked` is set from the request until the
 * next acquisition: one request serves all waiters.  Only one waiter, the warden, has a timer for it, sometimes also
 * the first waiter (sleep_until).
 *
 * Switching.  A holder that was asked gives the GIL up and waits until `switch_sequence` has moved: each acquisition
 * moves it, and wakes the sleepers if the last holder was asked or hands over.  The waiter read the sequence under
 * switch_mutex, under which acquisitions happen, or with the GIL held, so it misses no step.
 * policy.c decides, ready.c keeps the queues, this file acts.
 *
 * Rejected: handing the GIL over to the thread that is woken (no other thread could have it until that one arrived); a
 * timer or a flag `asked` for each waiter; two pollers; a helper thread for the waiters (docs/explanation/limits.md).
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

/* A thread that waits for a switch checks this often: a request made before the installation is unknown to us,
 * so nobody wakes its waiter. */
#define SWITCH_RECHECK_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* How long the end of an atomic section waits at most for another thread to take the GIL. */
#define HAND_OVER_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* How long the GIL is kept for a thread that was interrupted in its turn. */
#define TURN_WAIT_NS (UINT64_C(2) * PLUS_NS_PER_US)

/* A granted thread that has not arrived after this long no longer holds back the next grant. */
#define GRANT_LIMIT_NS (UINT64_C(2) * PLUS_NS_PER_MS)

/* Written under the GIL's mutex unless said otherwise. */
static struct {
    _Atomic bool running; /* we do the waiting; otherwise libc does, and we only track the holder */
    struct plus_policy policy;
    struct plus_interpreter interpreter;
    _Atomic(pthread_mutex_t *) mutex; /* the GIL's, for lending threads, which do not hold it */
    _Atomic uint64_t spin_ns;         /* the policy's, for readers without the mutex */
    struct plus_ready ready;          /* the waiters */

    /* The warden wakes the first waiter when it is time to ask, so that a crowd costs what two waiters cost.  The
     * first waiter has a timer of its own only after a request, or if one of its last waits was long.  The warden
     * is the last waiter in the whole order: it stays in the queue longest and changes only when a newcomer
     * queues, which is awake anyway.  A warden that leaves for good names the next.  NULL: nobody waits.  Cleared
     * without the mutex by a thread that ends. */
    _Atomic(struct plus_thread *) warden;

    struct plus_thread *holder;      /* NULL: free */
    struct plus_thread *last_holder; /* compared, never followed */
    int holder_cpu;
    /* The thread that was woken to take the GIL and has not taken it yet.  A thread that ends clears this without the
     * mutex. */
    _Atomic(struct plus_thread *) granted;
    uint64_t granted_ns;
    unsigned granted_level;
    _Atomic bool granted_polling; /* `granted` was awake then; read under switch_mutex */

    _Atomic bool asked; /* the holder has been asked; read without the mutex by its owner */
    bool unheard;       /* a request to this holder was not answered in time: every waiter asks */
    uint64_t protected_until_ns;       /* no request before: the holder was overtaken too long */
    enum plus_protection protect_next; /* for the run of the thread granted last */

    /* A thread that was asked during its turn and comes back as soon as another has taken the GIL. */
    _Atomic(struct plus_thread *) returning; /* compared, never followed */
    unsigned returning_level;
    int returning_cpu;

    uint64_t interval_ns; /* the interpreter's switch interval */
    uint64_t slice_ns; /* one turn: the policy's, or the interpreter's switch interval if longer */

    _Atomic uint32_t switch_sequence; /* futex word: incremented by each acquisition */
    bool hands_over;     /* the holder will wait for the switch without having been asked */
    bool switch_awaited; /* the last holder was asked, so it may wait for the switch */
    _Atomic uint32_t switch_sleepers; /* threads asleep on it; written by them */
    _Atomic uint32_t pollers;         /* written by the pollers; at most one polls */

    _Atomic uint64_t abandoned_sections; /* written by threads that end */

    bool many_cpus;
    plus_observer observer; /* NULL: none */
    struct plus_sched_counts counts;
    struct plus_stall_watch stalls;
    bool sampled, lasting_told; /* of the present hold */
} S = {.stalls = {.limit_ns = UINT64_MAX, .sample_ns = UINT64_MAX, .lasting_ns = UINT64_MAX}};

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
    /* A signal or a stray wake-up ends the sleep early; the caller decides again, which does no harm. */
    plus_futex_wait(&self->parking, PLUS_PARK_ASLEEP, deadline_ns);
}

/* Called under the mutex, so that the record cannot go away before the system call: the sleeper needs the
 * mutex to continue. */
static bool
unpark(struct plus_thread *thread, enum plus_parking reason)
{
    uint32_t before = atomic_exchange(&thread->parking, reason);

    if (before == PLUS_PARK_ASLEEP) {
        plus_futex_wake(&thread->parking, 1);
    }
    return before == PLUS_PARK_WAITING;
}

/* Returns how long to poll, in ns. Polling pays only if the holder runs on another processor right now and will release
 * the GIL soon, and if no other thread polls: two pollers would take both cores from the holder. */
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

/* Returns whether `a` is served before `b`. */
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
    /* A warden that is not queued left to ask, and the interpreter ended its thread. */
    if (warden == NULL || warden == self || !warden->queued || is_before(warden, self)) {
        atomic_store_explicit(&S.warden, self, memory_order_relaxed);
    }
    if (S.holder != NULL) {
        plus_ready_count(&S.ready, now, holder_level(now));
    }
}

/* A warden stays the warden, because it comes back at once. */
static void
leave_to_ask(struct plus_thread *thread)
{
    plus_ready_remove(&S.ready, thread);
    thread->queued = false;
}

/* A thread that leaves the queue stops being its warden. */
static void
resign(const struct plus_thread *thread)
{
    if (atomic_load_explicit(&S.warden, memory_order_relaxed) != thread) {
        return;
    }
    struct plus_thread *last = plus_ready_last(&S.ready);

    atomic_store_explicit(&S.warden, last, memory_order_relaxed);
    if (last != NULL) {
        unpark(last, PLUS_PARK_RECHECK); /* the new warden has no timer yet */
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
            S.holder->acquired_ns = now; /* the holder took the GIL while it was the only thread */
        }
        situation.holder_level = holder_level(now);
        situation.holder_atomic = atomic_load(&S.holder->atomic_depth) > 0;
    }
    return plus_policy_decide(&S.policy, &situation);
}

/* Returns until when a waiter that need not ask now may sleep.  The warden keeps the time for the first waiter,
 * which sleeps without a timer, and wakes it when it is time to ask. */
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

/* The holder stores its depth and then reads `asked`; we store `asked` and then read the depth.  Both are
 * sequentially consistent, so at least one of the two sees the other.  We withdraw only our own request: an
 * earlier one found the holder outside a section, so the interpreter has it and the holder, which may be
 * entering a section now, must still read it. */
static bool
ask_holder(void)
{
    bool asked_before = atomic_exchange(&S.asked, true);

    if (S.holder == NULL || atomic_load(&S.holder->atomic_depth) == 0) {
        return true;
    }
    atomic_store(&S.holder->atomic_wanted, true);
    if (atomic_load(&S.holder->atomic_depth) == 0) { /* it left before it could see atomic_wanted */
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

/* Handles a request that was not answered within an interval.  Mostly the holder has no core or does not check
 * for requests, and all that helps is to ask again.  But the request may have gone to the waiter's own
 * sub-interpreter instead of the holder's; then only a waiter of the holder's interpreter can reach it.  So every
 * waiter asks once, as in the interpreter's own scheduling. */
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

/* Checks the situation once.  Returns true when the wait is over; *result is then for the interpreter.
 *
 * The interpreter heeds ETIMEDOUT only if no switch happened since its wait began.  So a request is made only in
 * the first round, before the mutex was released.  A later round returns to the interpreter like a spurious
 * wake-up; the interpreter calls again, and the thread keeps its ticket. */
static bool
wait_is_over(struct plus_thread *self, const struct plus_decision *decision, bool first,
             int *result)
{
    bool ask = decision->ask;

    *result = 0;
    if (decision->wants) {
        /* The holder stores its depth and then reads `wanted`: at least one of us sees the other. */
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
        /* A thread that has to end learns it from a time-out.  It gets one every second round, so that it
         * does not keep others from the mutex. */
        if (first && self->ending_seen) {
            *result = ETIMEDOUT;
            atomic_store(&S.asked, true);
        }
        self->ending_seen = !first;
        return *result != 0 || !first;
    }
    return false;
}

/* If a signal ended the main thread's sleep, the main thread has to run the handler: it is served first. */
static bool
has_signal(const struct plus_thread *self, uint64_t now, uint64_t deadline_ns)
{
    return now < deadline_ns && atomic_load(&self->parking) == PLUS_PARK_ASLEEP &&
           self->native_id == getpid();
}

/* Polls instead of asking: the holder usually gives the GIL up by itself within the polling time, and asking
 * would make it wait for the switch.  Returns false if this thread may not poll. */
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

/* ------------------------------------------------------------------------------------------------
 * Stalls: a hold that lasts long while others wait.  A compare at the end of each hold and in each round of a wait is
 * all that they cost while there is none.
 */

struct waiting_sum {
    uint64_t since_ns, now_ns, longest_ns;
    struct plus_stall stall;
};

static void
add_waiter(struct plus_thread *thread, void *argument)
{
    struct waiting_sum *sum = argument;

    if (thread->wait_start_ns != 0) {
        bool later = thread->wait_start_ns > sum->since_ns;
        uint64_t waited_ns = sum->now_ns - (later ? thread->wait_start_ns : sum->since_ns);

        sum->longest_ns = waited_ns > sum->longest_ns ? waited_ns : sum->longest_ns;
        sum->stall.waited_ns += waited_ns;
        sum->stall.waiters++;
    }
}

static void
tell_stall(struct plus_thread *self, uint64_t now, bool asked)
{
    struct waiting_sum sum = {.since_ns = self->acquired_ns, .now_ns = now};

    sum.stall.sampled = S.sampled;
    S.sampled = S.lasting_told = false;
    sum.stall.hold_ns = now - self->acquired_ns;
    if (sum.stall.hold_ns < S.stalls.limit_ns) {
        return;
    }
    /* A section that kept others waiting hands over when it ends. */
    sum.stall.atomic = atomic_load(&self->atomic_depth) > 0 || (S.switch_awaited && !asked);
    plus_threads_visit(add_waiter, &sum);
    if (sum.longest_ns >= S.stalls.limit_ns) {
        self->stalls++;
        S.stalls.ended(self, &sum.stall);
    }
}

/* Looks at a hold that goes on, from a thread that waits for its end.  The line is written without the mutex: whatever
 * reads standard error may be slow, and the holder needs the mutex to give the GIL up. */
static void
look_at_holder(pthread_mutex_t *mutex, uint64_t hold_ns)
{
    char text[2048];

    if (!S.sampled && atomic_load(&S.holder->atomic_depth) == 0) {
        S.sampled = true;
        S.stalls.sample(S.holder);
    }
    if (S.lasting_told || hold_ns < S.stalls.lasting_ns) {
        return;
    }
    size_t length = S.stalls.lasting(S.holder, hold_ns, text, sizeof(text));

    S.lasting_told = true;
    pthread_mutex_unlock(mutex);
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written; /* nobody can be told */
    pthread_mutex_lock(mutex);
}

static _Atomic uint64_t stall_ns = UINT64_MAX;

void
plus_sched_watch_stalls(const struct plus_stall_watch *watch)
{
    S.stalls = *watch;
    atomic_store_explicit(&stall_ns, watch->limit_ns, memory_order_relaxed);
}

uint64_t
plus_sched_stall_ns(void)
{
    return atomic_load_explicit(&stall_ns, memory_order_relaxed);
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
                resign(self); /* this thread may end while it asks for the GIL */
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
        if (S.holder != NULL && S.holder->acquired_ns != 0 && now > S.holder->acquired_ns &&
            now - S.holder->acquired_ns >= S.stalls.sample_ns) {
            look_at_holder(mutex, now - S.holder->acquired_ns);
        }
        if (now - self->wait_start_ns > PLUS_LIGHT_NS) {
            self->impatience = PLUS_IMPATIENCE;
        }
        if (!self->queued) {
            self->missed = true; /* cleared when it has taken the GIL */
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
    /* Acquisitions happen under switch_mutex too, so the sequence has not moved since the interpreter saw
     * that no thread took the GIL yet. */
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
    self->forced_ns += plus_now_ns() - start; /* does not count as absence */
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
    plus_brief_histogram_add(&self->wait_times, waited);
    if (S.observer != NULL) {
        S.observer(PLUS_OBSERVED_WAIT, waited, &self->mark);
    }
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
    /* If this thread got the GIL although a lighter thread waits, or one whose turn it is, wake the first waiter
     * to ask now.  So no waiter needs a timer for that moment. */
    struct plus_thread *first = plus_ready_first(&S.ready);

    if (first != NULL &&
        (first->level < self->level ||
         (first->level > 0 && first->level == self->level && first->ticket < self->ticket))) {
        unpark(first, PLUS_PARK_RECHECK);
    }
}

/* Nearly every acquisition follows a release that nobody asked for; these skip the fence, which orders the
 * store of the sequence before the load of the sleepers. */
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

/* A thread that is alone has no waiters to wake and is not timed, so a single-threaded program pays next to nothing. */
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
    self->mark = 0;
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
        resign(self); /* a warden that left the queue to ask may have found the GIL free */
        returns_to_gil(self, now);
        if (self->wait_start_ns != 0) {
            end_wait(self, now);
        }
        begin_hold(self, now);
    }
    self->mark = 0;
    tell_switch_waiters();
}

/* Waits a moment for S.returning.  A thread that a lighter one interrupted is awake on another processor and back
 * within a microsecond; waking the next thread instead costs a system call and a context switch at each request
 * of each lighter thread.  If the interrupted thread was on its way to a blocking call, the caller wakes the next
 * one after all. */
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
    atomic_store(&S.returning, NULL); /* wait for that thread only once */
}

static void
grant_next(uint64_t now)
{
    struct plus_thread *on_the_way = atomic_load_explicit(&S.granted, memory_order_relaxed);
    const struct plus_thread *first = plus_ready_first(&S.ready);

    /* If another thread took the GIL while the granted one was on its way, the granted one still comes, so
     * nobody else is woken for nothing.  But a lighter waiter does not stand behind it. */
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

/* Lengthens the kernel slice of a thread that becomes CPU-bound, and restores it later: else the thread would keep a
 * handler from the core that the kernel chose for both. */
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

    if (__builtin_expect(hold >= S.stalls.sample_ns, 0)) {
        tell_stall(self, now, asked);
    }
    self->acquired_ns = 0;
    self->released_ns = now;
    self->hold_ns += hold;
    if (S.observer != NULL) {
        S.observer(PLUS_OBSERVED_HOLD, hold, &self->mark);
    }
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
        return; /* a single thread is not timed */
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
 * A lender stores the loan and then reads the owner word again; the owner changes the word and then reads
 * loan_count.  Both are sequentially consistent, so at least one of the two sees the other: no loan outlives the
 * owner's release.
 */

/* Follow at most 8 owners; the limit also ends a cycle. */
#define CHAIN_LIMIT 8u

struct lending {
    const _Atomic uint64_t *thing;
    unsigned level;
    const _Atomic uint64_t *next; /* the owner word of what the owner itself waits for */
    bool is_first;                /* the first of the chain: the lender's own loan */
    uint64_t lent_to;             /* serial of the thread that got the first loan; 0: none */
};

static void
lend_to(struct plus_thread *owner, void *argument)
{
    struct lending *lending = argument;

    /* Lend even if it changes nothing now: the owner may compute for long while it owns the thing. */
    if (!(lending->is_first ? plus_loans_add(owner, lending->thing, lending->level)
                            : plus_loans_raise(owner, lending->thing, lending->level))) {
        return;
    }
    if (lending->is_first && atomic_load(lending->thing) != owner->serial) {
        plus_loans_take_back(owner, lending->thing); /* the owner released it meanwhile */
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
            unpark(owner, PLUS_PARK_RECHECK); /* the owner is the first waiter now, and may ask */
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
        self->waits_for = lent->outer; /* after a fork no other thread can read it */
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
 * Start and stop.
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

/* Clears what a record still holds from an earlier run of the scheduler. */
static void
reset_waiting(struct plus_thread *thread, void *argument)
{
    (void)argument;
    thread->missed = false;
    thread->signalled = false;
    thread->asks_again = false;
    if (thread->queued) { /* plus_sched_stop() sent it back; it has not left the queue yet */
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

/* Only the interpreter knows whether a request to the holder is pending, so assume one: the holder's first section
 * gives the GIL up once. */
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
    /* A waiter that still sleeps in the queue has not seen the stop.  The old warden may have taken the GIL meanwhile
     * and has no timer any more, so name a new one. */
    atomic_store_explicit(&S.warden, plus_ready_last(&S.ready), memory_order_relaxed);
    wake_all_but(NULL);
    S.holder->acquired_ns = plus_now_ns();
    S.many_cpus = plus_usable_cpus(S.holder->acquired_ns) > 1u;
}

void
plus_sched_stop(bool is_tracked)
{
    S.running = false;
    if (!is_tracked) {
        /* Nobody tells the release from now on, and the holder's record is freed when its thread ends. */
        S.holder = NULL;
    }
    plus_threads_visit(give_kernel_slice_back, NULL);
    wake_all_but(NULL);
    atomic_store(&S.granted, NULL);
    clear_debts();
    /* Wake the threads that wait for a switch: from now on libc wakes them. */
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

static void
clear_mark(struct plus_thread *thread, void *unused)
{
    (void)unused;
    thread->mark = 0;
}

void
plus_sched_observe(plus_observer observer)
{
    plus_threads_visit(clear_mark, NULL);
    S.observer = observer;
}

struct plus_present
plus_sched_present(const struct plus_thread *thread, uint64_t now)
{
    uint64_t since = thread->wait_start_ns;
    bool gave_way = S.holder != NULL && S.holder->acquired_ns != 0 && thread->usage.asked &&
                    since >= S.holder->acquired_ns;
    bool holds = thread == S.holder || gave_way;
    const _Atomic uint64_t *owner = thread->waits_for;

    return (struct plus_present){
        .level = level_of(thread, 0),
        .holds = holds,
        .since_ns = !holds && since != 0 && now > since ? now - since : 0,
        .waits_for = owner != NULL ? atomic_load(owner) : 0,
    };
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
    /* The thread gave the GIL up already, so nobody waits for its section; only count it. */
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
    atomic_store(&S.mutex, NULL); /* the interpreter makes a new one */
    S.holder = S.holder == self ? self : NULL;
    S.last_holder = S.holder;
    atomic_store(&S.granted, NULL);
    atomic_store(&S.asked, false);
    S.unheard = false;
    S.sampled = S.lasting_told = false;
    S.hands_over = false;
    atomic_store(&S.switch_sleepers, 0);
    atomic_store(&S.pollers, 0);
    clear_debts();
    plus_sched_reset_counts();
    if (self != NULL) {
        self->queued = false;
        self->ticket = 0;
        self->turn_used_ns = 0;
        self->usage = (struct plus_usage){0}; /* a worker starts like any new thread */
        atomic_store(&self->loan_count, 0);
        self->wait_start_ns = 0;
        self->next = NULL;
        self->prev = NULL;
        atomic_store(&self->atomic_wanted, false);
    }
}
