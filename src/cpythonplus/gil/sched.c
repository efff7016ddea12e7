#define _GNU_SOURCE
#include "sched.h"

#include "../base/clock.h"
#include "../base/cpus.h"
#include "../base/futex.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>

/* Who waits for a switch looks again this often: a request from before the installation is not known
 * to us, and its waiter is not told. */
#define SWITCH_RECHECK_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* How long the end of an atomic section waits at most for another thread to take the GIL. */
#define HAND_OVER_NS (UINT64_C(5) * PLUS_NS_PER_MS)

/* The debt to batch threads is limited to so many starvation bounds. */
#define DEBT_LIMIT 8u

/* How long the GIL is kept for a batch thread that was interrupted in its turn. */
#define TURN_WAIT_NS (UINT64_C(2) * PLUS_NS_PER_US)

/* A granted thread that has not arrived after this long is not waited for any more. */
#define GRANT_LIMIT_NS (UINT64_C(2) * PLUS_NS_PER_MS)

/* Written under the GIL's mutex unless said otherwise. */
static struct {
    _Atomic bool running; /* we do the waiting; otherwise libc does, and we only know the holder */
    struct plus_policy policy;
    bool (*ending)(void);        /* the interpreter finalises: waiters must be sent back to it */
    _Atomic uint64_t spin_ns;    /* the policy's, for readers without the mutex */
    struct plus_queue queues[2]; /* by enum plus_class */

    struct plus_thread *holder;      /* NULL: free */
    struct plus_thread *last_holder; /* compared, never followed */
    int holder_cpu;
    _Atomic(struct plus_thread *) granted; /* woken to take it, has not arrived; cleared without the
                                              mutex by a thread that ends */
    uint64_t granted_ns;
    enum plus_class granted_class;
    _Atomic bool granted_polling; /* it was awake when it was granted; read under switch_mutex */

    _Atomic bool asked; /* the holder has been asked; read without the mutex by its owner */
    bool unheard;       /* a request to this holder was not answered in time: everybody asks */
    uint64_t next_ticket;
    uint64_t protected_until_ns; /* a starved batch thread may not be asked before */
    bool protect_next;           /* the thread granted last gets such a run */
    struct plus_thread *turn;    /* the batch thread whose turn it is; compared, never followed */
    uint64_t turn_used_ns;
    _Atomic bool
        turn_returns; /* it was asked, and comes back as soon as another has taken the GIL */
    int turn_cpu;
    uint64_t slice_ns; /* of a turn: the policy's, or the interpreter's switch interval if longer */
    uint64_t starved_ns;       /* how long batch threads waited, less what they got */
    uint64_t starved_since_ns; /* 0: not counting */
    uint64_t brief_hold_ns;    /* moving average of interactive holds */

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

/* Time that passes while batch threads wait and none of them holds the GIL.  The debt is limited, so
 * that a long drought does not turn into a long flood. */
static void
count_starvation(uint64_t now)
{
    uint64_t limit = S.policy.starvation_ns * DEBT_LIMIT;

    if (S.starved_since_ns != 0 && now > S.starved_since_ns) {
        S.starved_ns += now - S.starved_since_ns;
    }
    if (S.starved_ns > limit) {
        S.starved_ns = limit;
    }
    S.starved_since_ns = S.queues[PLUS_BATCH].length > 0 ? now : 0;
}

static void
returns_to_gil(struct plus_thread *self, uint64_t now)
{
    if (S.turn == self) {
        atomic_store(&S.turn_returns, false);
    }
    uint64_t since = self->released_ns + self->forced_ns;

    if (self->released_ns != 0 && now > since) {
        self->account_ns = plus_policy_decay(self->account_ns, now - since);
    }
    self->released_ns = 0;
    self->forced_ns = 0;
}

static void
enqueue(struct plus_thread *self, uint64_t now)
{
    self->queued_as = plus_policy_class(&S.policy, self->account_ns);
    if (self->has_turn && S.turn != self) {
        self->has_turn = false; /* it came back too late: somebody else's turn has begun */
        self->ticket = 0;
    }
    if (self->ticket == 0) {
        self->ticket = ++S.next_ticket;
    }
    plus_queue_insert(&S.queues[self->queued_as], self);
    self->queued = true;
    if (self->queued_as == PLUS_BATCH && S.starved_since_ns == 0 &&
        (S.holder == NULL || S.holder->queued_as == PLUS_INTERACTIVE)) {
        S.starved_since_ns = now;
    }
}

static void
dequeue(struct plus_thread *thread)
{
    plus_queue_remove(&S.queues[thread->queued_as], thread);
    thread->queued = false;
}

/* ------------------------------------------------------------------------------------------------
 * Waiting.
 */

static struct plus_decision
decide(struct plus_thread *self, uint64_t interval_ns, uint64_t now)
{
    const struct plus_queue *queue = &S.queues[self->queued_as];
    const struct plus_thread *first = queue->head;
    struct plus_situation situation = {
        .now_ns = now,
        .interval_ns = interval_ns,
        .self = self,
        .holder = S.holder,
        .asked = atomic_load(&S.asked),
        .self_is_first = first == self,
        /* Behind the one that was only interrupted in its turn stands the next in turn. */
        .self_is_next = first == self || (first == S.turn && first->next == self),
        .ahead = first == self ? 0 : queue->length - 1u,
        .turn_used_ns = S.turn_used_ns,
        .holder_has_turn = S.holder == S.turn,
        .protected_until_ns = S.protected_until_ns,
        .brief_hold_ns = S.brief_hold_ns,
        .missed = self->missed,
        .slice_ns = S.slice_ns,
    };

    if (S.holder != NULL) {
        if (S.holder->acquired_ns == 0) {
            S.holder->acquired_ns = now; /* it took the GIL while it was the only thread */
        }
        situation.holder_atomic = atomic_load(&S.holder->atomic_depth) > 0;
    }
    return plus_policy_decide(&S.policy, &situation);
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

/* A request that was not answered within an interval.  Either the holder has no core now, or does not
 * look; or, up to 3.12, the request went to the waiter's own sub-interpreter instead of the holder's,
 * where only a waiter of the holder's interpreter can reach it.  So everybody asks once now, as they
 * all do in the interpreter's own scheduling. */
static void
ask_all(struct plus_thread *self)
{
    S.counts.repeated_requests++;
    S.unheard = true;
    self->joined = atomic_load(&S.switch_sequence);
    for (int class = 0; class < 2; class++) {
        for (struct plus_thread *t = S.queues[class].head; t != NULL; t = t->next) {
            if (t != self) {
                unpark(t, PLUS_PARK_RECHECK);
            }
        }
    }
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
                ask_all(self);
            }
            self->asks_again = false;
            self->joined = atomic_load(&S.switch_sequence);
            *result = ETIMEDOUT;
            S.counts.requests++;
            return true;
        }
    }
    if (S.ending()) {
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
    S.many_cpus = plus_usable_cpus(now) > 1u;
    S.slice_ns = S.policy.batch_slice_ns > interval_ns ? S.policy.batch_slice_ns : interval_ns;
    enqueue(self, now);
    for (bool first = true; S.running; first = false) {
        struct plus_decision decision = decide(self, interval_ns, now);

        if (wait_is_over(self, &decision, first, &result)) {
            dequeue(self);
            S.counts.immediate_requests += result == ETIMEDOUT && begins;
            return result;
        }
        atomic_store(&self->parking, PLUS_PARK_WAITING);
        uint64_t poll_ns = poll_budget(&decision);
        pthread_mutex_unlock(mutex);
        park_nogil(self, poll_ns, decision.deadline_ns);
        pthread_mutex_lock(mutex);
        now = plus_now_ns();
        if (now - self->wait_start_ns > S.policy.grace_ns) {
            self->impatience = PLUS_IMPATIENCE;
        }
        if (!self->queued) {
            self->missed = true; /* until it has really taken it */
            return 0;            /* granted */
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

/* A batch thread has it while others wait: nobody has to have a timer for that moment, the first of
 * them is woken now and decides anew (an interactive one asks). */
static void
tell(enum plus_class class)
{
    struct plus_thread *first = S.queues[class].head;

    if (first != NULL) {
        unpark(first, PLUS_PARK_RECHECK);
    }
}

static void
end_wait(struct plus_thread *self, uint64_t now)
{
    uint64_t waited = now - self->wait_start_ns;

    self->wait_ns += waited;
    self->waits++;
    plus_histogram_add(&S.counts.waits[self->queued_as], waited);
    self->wait_start_ns = 0;
    self->asks_again = false;
    self->missed = false;
    if (waited <= S.policy.grace_ns && self->impatience > 0) {
        self->impatience--;
    }
}

static void
begin_hold(struct plus_thread *self, uint64_t now)
{
    enum plus_class class = plus_policy_class(&S.policy, self->account_ns);

    self->acquired_ns = now;
    S.holder_cpu = sched_getcpu();
    if (class == PLUS_INTERACTIVE) {
        self->ticket = 0;
        return;
    }
    count_starvation(now);
    S.starved_since_ns = 0;
    S.protected_until_ns = 0;
    if (S.protect_next) {
        S.protect_next = false;
        S.protected_until_ns = now + plus_policy_quantum_ns(&S.policy);
        S.counts.protected_runs++;
    }
    if (S.turn != self) {
        S.turn = self;
        S.turn_used_ns = 0;
        self->has_turn = true;
        tell(PLUS_BATCH); /* the next in turn sets its timer for the end of this one */
    }
    tell(PLUS_INTERACTIVE);
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
        returns_to_gil(self, now);
        if (self->wait_start_ns != 0) {
            end_wait(self, now);
        }
        else {
            self->queued_as = plus_policy_class(&S.policy, self->account_ns);
        }
        begin_hold(self, now);
    }
    tell_switch_waiters();
}

/* The batch thread that an interactive one interrupted is awake on another processor and back within
 * a microsecond; waking the next in turn instead costs a system call and a change of threads, at
 * each request of each interactive thread.  So it gets that microsecond.  It may also have been on
 * its way to a blocking call: then the next in turn is woken after all. */
static void
await_turn(pthread_mutex_t *mutex)
{
    uint64_t start;

    if (!atomic_load(&S.turn_returns) || !S.many_cpus || S.turn_cpu == S.holder_cpu ||
        S.queues[PLUS_BATCH].length == 0 || S.queues[PLUS_INTERACTIVE].length > 0) {
        return;
    }
    pthread_mutex_unlock(mutex);
    start = plus_now_ns();
    while (atomic_load(&S.turn_returns) && plus_now_ns() - start < TURN_WAIT_NS) {
        plus_cpu_relax();
    }
    pthread_mutex_lock(mutex);
}

/* Interactive first, unless batch threads have waited for long enough. */
static struct plus_thread *
pick_next(void)
{
    struct plus_thread *interactive = S.queues[PLUS_INTERACTIVE].head;
    struct plus_thread *batch = S.queues[PLUS_BATCH].head;

    if (batch != NULL && interactive != NULL && S.policy.batch_share > 0.0 &&
        S.starved_ns >= S.policy.starvation_ns) {
        S.protect_next = true;
        return batch;
    }
    return interactive != NULL ? interactive : batch;
}

static void
grant_next(uint64_t now)
{
    struct plus_thread *on_the_way = atomic_load_explicit(&S.granted, memory_order_relaxed);

    /* Somebody barged in while another was on its way: that one still comes, and wakes nobody
     * else's sleep for nothing; but an interactive waiter does not stand behind a batch one. */
    if (on_the_way != NULL && now - S.granted_ns < GRANT_LIMIT_NS &&
        (S.granted_class == PLUS_INTERACTIVE || S.queues[PLUS_INTERACTIVE].head == NULL)) {
        return;
    }
    struct plus_thread *next = pick_next();
    if (next == NULL) {
        return;
    }
    dequeue(next);
    atomic_store(&S.granted, next);
    S.granted_ns = now;
    S.granted_class = next->queued_as;
    atomic_store(&S.granted_polling, unpark(next, PLUS_PARK_GRANTED));
}

static void
end_hold(struct plus_thread *self, uint64_t now, bool asked)
{
    uint64_t hold = now - self->acquired_ns;
    enum plus_class class = plus_policy_class(&S.policy, self->account_ns + hold);

    self->acquired_ns = 0;
    self->released_ns = now;
    self->hold_ns += hold;
    plus_histogram_add(&S.counts.holds[class], hold);
    self->account_ns = plus_policy_account(&S.policy, self->account_ns, hold, asked);
    if (class == PLUS_INTERACTIVE) {
        S.brief_hold_ns += hold / 8u - S.brief_hold_ns / 8u;
        count_starvation(now);
        return;
    }
    uint64_t repaid = plus_policy_repaid_ns(&S.policy, hold);
    S.starved_ns = S.starved_ns > repaid ? S.starved_ns - repaid : 0;
    S.starved_since_ns = asked || S.queues[PLUS_BATCH].length > 0 ? now : 0;
    if (S.turn == self) {
        S.turn_used_ns += hold;
    }
    if (!asked || S.turn != self || S.turn_used_ns >= S.slice_ns) {
        self->ticket = 0; /* its turn is over: to the end of the queue next time */
        self->has_turn = false;
        S.turn = S.turn == self ? NULL : S.turn;
    }
    S.turn_cpu = S.holder_cpu;
    atomic_store(&S.turn_returns, S.turn == self);
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
    if (self->acquired_ns == 0 && S.queues[0].length + S.queues[1].length == 0) {
        return; /* the only thread, not timed */
    }
    uint64_t now = plus_now_ns();

    S.counts.forced_switches += asked;
    if (self->acquired_ns != 0) {
        end_hold(self, now, asked);
    }
    S.protected_until_ns = 0;
    if (self != S.turn) {
        await_turn(mutex);
    }
    if (S.holder == NULL) {
        grant_next(plus_now_ns());
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
    S.protect_next = false;
    S.starved_ns = 0;
    S.starved_since_ns = 0;
    S.turn = NULL;
    S.turn_used_ns = 0;
    atomic_store(&S.turn_returns, false);
}

/* What a record still says of an earlier run of the scheduler. */
static void
reset_waiting(struct plus_thread *thread, void *argument)
{
    (void)argument;
    thread->ticket = 0;
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
plus_sched_start(const struct plus_policy *policy, bool (*ending)(void))
{
    S.policy = *policy;
    S.slice_ns = policy->batch_slice_ns;
    S.ending = ending;
    atomic_store(&S.spin_ns, policy->spin_ns);
    if (S.running) {
        return;
    }
    plus_threads_visit(reset_waiting, NULL);
    note_holder();
    S.running = true;
    S.holder->acquired_ns = plus_now_ns();
    S.many_cpus = plus_usable_cpus(S.holder->acquired_ns) > 1u;
}

void
plus_sched_stop(void)
{
    S.running = false;
    for (int class = 0; class < 2; class++) {
        for (struct plus_thread *t = S.queues[class].head; t != NULL; t = t->next) {
            unpark(t, PLUS_PARK_RECHECK);
        }
    }
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
    return plus_policy_class(&S.policy, thread->account_ns + held);
}

void
plus_sched_forget(struct plus_thread *thread)
{
    struct plus_thread *expected = thread;

    atomic_compare_exchange_strong(&S.granted, &expected, NULL);
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

    S.queues[0] = (struct plus_queue){0};
    S.queues[1] = (struct plus_queue){0};
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
        self->wait_start_ns = 0;
        self->next = NULL;
        self->prev = NULL;
        atomic_store(&self->atomic_wanted, false);
    }
}
