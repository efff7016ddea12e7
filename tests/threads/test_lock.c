/* The lock under real threads that no GIL keeps apart: its word changes by compare-and-swap. */
#define _GNU_SOURCE
#include "../gil/check.h"

#include "_base/process/clock.h"
#include "_base/process/fork.h"
#include "_base/process/futex.h"
#include "threads/waiting/lock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENT PLUS_FUTEX_NO_DEADLINE

static struct plus_lock lock;

/* What the many threads do with the lock; the thread sanitizer looks too. */
static struct {
    uint64_t guarded, copy; /* by the lock only */
    _Atomic uint64_t acquired, nested, timed_out, left;
    _Atomic unsigned at_work;
    bool slow; /* some sections take so long that signals come meanwhile */
} mix;

static void
section(void)
{
    mix.guarded++;
    mix.copy++;
    CHECK(mix.guarded == mix.copy);
}

/* What "signal handlers" do, before the wait goes on. */
enum handling { HEEDS_NONE, LEAVES, TAKES_IT };

/* As the binding acquires, without Python: 1, 0 after the dead line, -1 if left after a signal. */
static int
acquire(struct plus_lock *l, uint64_t deadline_ns, enum handling handling)
{
    struct plus_waiter waiter;

    if (plus_lock_try(l, plus_identity())) {
        return 1;
    }
    plus_waiter_init(&waiter, handling != HEEDS_NONE);
    for (;;) {
        enum plus_wait_result result = PLUS_WAIT_WOKEN;

        if (plus_lock_enqueue(l, &waiter)) {
            result = plus_lock_wait_nogil(l, &waiter, deadline_ns);
        }
        if (result == PLUS_WAIT_SIGNAL) {
            result = plus_waiter_interrupt(&l->queue, &waiter);
        }
        switch (result) {
        case PLUS_WAIT_GRANTED:
            return 1;
        case PLUS_WAIT_TIMED_OUT:
            return 0;
        case PLUS_WAIT_WOKEN:
            if (plus_lock_after_wake(l, &waiter)) {
                return 1;
            }
            break;
        case PLUS_WAIT_SIGNAL:
            if (handling == LEAVES) {
                return -1;
            }
            CHECK(acquire(l, PATIENT, HEEDS_NONE) == 1);
            section();
            atomic_fetch_add(&mix.nested, 1);
            CHECK(plus_lock_release(l) == 0);
            if (plus_lock_try(l, waiter.identity)) {
                return 1;
            }
            break;
        }
    }
}

static void
await_waiters(struct plus_lock *l, uint32_t length)
{
    bool there;

    do {
        usleep(50);
        plus_waitq_lock(&l->queue);
        there = l->queue.length == length;
        plus_waitq_unlock(&l->queue);
    } while (!there);
}

static void
await_starvation(struct plus_lock *l)
{
    bool starves;

    do {
        usleep(100);
        plus_waitq_lock(&l->queue);
        starves = plus_waitq_starves(&l->queue, plus_now_ns());
        plus_waitq_unlock(&l->queue);
    } while (!starves);
}

/* Nothing may be left of what there was: a SLOW that stays would slow down each release. */
static void
check_as_new(struct plus_lock *l)
{
    CHECK(atomic_load(&l->word) == 0);
    CHECK(atomic_load(&l->owner) == 0);
    CHECK(!plus_lock_is_locked(l));
    plus_waitq_lock(&l->queue);
    CHECK(l->queue.head == NULL && l->queue.tail == NULL && l->queue.length == 0);
    CHECK(l->queue.woken == 0);
    plus_waitq_unlock(&l->queue);
}

/* --- one thread */

static void
test_alone(void)
{
    plus_lock_init(&lock);
    CHECK(plus_lock_release(&lock) == -EPERM);
    check_as_new(&lock);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(plus_lock_try(&lock, plus_identity()));
        CHECK(atomic_load(&lock.word) == PLUS_LOCK_LOCKED);
        CHECK(atomic_load(&lock.owner) == plus_identity());
        CHECK(plus_lock_is_locked(&lock));
        CHECK(!plus_lock_try(&lock, plus_identity())); /* also not its owner again */
        CHECK(plus_lock_release(&lock) == 0);
        check_as_new(&lock);
    }
    CHECK(plus_lock_release(&lock) == -EPERM);
    CHECK(plus_waitq_counts(&lock.queue).waits == 0);
}

static void
test_times_out_and_leaves_no_trace(void)
{
    plus_lock_init(&lock);
    CHECK(plus_lock_try(&lock, plus_identity()));
    uint64_t deadline = plus_now_ns() + 2u * PLUS_NS_PER_MS;
    CHECK(acquire(&lock, deadline, HEEDS_NONE) == 0);
    CHECK(plus_now_ns() >= deadline);
    CHECK(acquire(&lock, 1, HEEDS_NONE) == 0); /* long past */
    CHECK(atomic_load(&lock.word) == PLUS_LOCK_LOCKED);
    struct plus_wait_counts counts = plus_waitq_counts(&lock.queue);
    CHECK(counts.timeouts == 2 && counts.contended == 2 && counts.waits == 2);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* Between the failed try and the queueing the lock was freed: no wait, and no trace of one. */
static void
test_free_again_before_it_queues(void)
{
    struct plus_waiter waiter;

    plus_lock_init(&lock);
    plus_waiter_init(&waiter, false);
    CHECK(!plus_lock_enqueue(&lock, &waiter));
    CHECK(plus_lock_after_wake(&lock, &waiter));
    CHECK(atomic_load(&lock.word) == PLUS_LOCK_LOCKED);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
    CHECK(plus_waitq_counts(&lock.queue).waits == 0);
}

/* --- two waits, without threads: nobody sleeps in them */

static void
no_hand_over_for_now(void)
{
    plus_waitq_lock(&lock.queue);
    lock.queue.handed_over_ns = plus_now_ns(); /* not again within a millisecond */
    plus_waitq_unlock(&lock.queue);
}

/* False if this thread did not run for so long that the first waiter starved. */
static bool
woken_in_vain(struct plus_waiter *first, struct plus_waiter *second)
{
    plus_lock_init(&lock);
    CHECK(plus_lock_try(&lock, plus_identity()));
    plus_waiter_init(first, false);
    plus_waiter_init(second, false);
    CHECK(plus_lock_enqueue(&lock, first));
    CHECK(plus_lock_enqueue(&lock, second));
    for (unsigned i = 0; i < 2; i++) {
        no_hand_over_for_now();
        CHECK(plus_lock_release(&lock) == 0);
        if (plus_waitq_counts(&lock.queue).hand_overs > 0) {
            return false;
        }
        /* One is on its way: no other is woken, and whoever comes first has the lock. */
        CHECK(lock.queue.head == second && lock.queue.tail == second);
        CHECK(plus_lock_try(&lock, plus_identity()));
    }
    CHECK(plus_lock_wait_nogil(&lock, first, PATIENT) == PLUS_WAIT_WOKEN);
    CHECK(!plus_lock_after_wake(&lock, first));
    return true;
}

static void
test_keeps_its_place_after_a_wake_up_in_vain(void)
{
    struct plus_waiter first, second;

    while (!woken_in_vain(&first, &second)) {
    }
    CHECK(plus_lock_enqueue(&lock, &first));
    CHECK(lock.queue.head == &first && lock.queue.tail == &second);
    CHECK(plus_waitq_counts(&lock.queue).contended == 2);
    CHECK(plus_lock_wait_nogil(&lock, &first, 0) == PLUS_WAIT_TIMED_OUT);
    CHECK(atomic_load(&lock.word) == (PLUS_LOCK_LOCKED | PLUS_LOCK_SLOW)); /* the second one */
    CHECK(plus_lock_wait_nogil(&lock, &second, 0) == PLUS_WAIT_TIMED_OUT);
    CHECK(atomic_load(&lock.word) == PLUS_LOCK_LOCKED);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* --- two threads */

static _Atomic bool acquired, may_release;

static void *
acquire_and_hold(void *unused)
{
    (void)unused;
    CHECK(acquire(&lock, PATIENT, HEEDS_NONE) == 1);
    CHECK(atomic_load(&lock.owner) == plus_identity());
    atomic_store(&acquired, true);
    while (!atomic_load(&may_release)) {
        usleep(50);
    }
    CHECK(plus_lock_release(&lock) == 0);
    return NULL;
}

static pthread_t
start_holder(void)
{
    pthread_t thread;

    atomic_store(&acquired, false);
    atomic_store(&may_release, false);
    CHECK(pthread_create(&thread, NULL, acquire_and_hold, NULL) == 0);
    return thread;
}

static void *
only_release(void *unused)
{
    (void)unused;
    CHECK(plus_lock_release(&lock) == 0);
    return NULL;
}

static void
test_any_thread_may_release(void)
{
    pthread_t releaser;

    plus_lock_init(&lock);
    CHECK(plus_lock_try(&lock, plus_identity()));
    CHECK(pthread_create(&releaser, NULL, only_release, NULL) == 0);
    CHECK(acquire(&lock, PATIENT, HEEDS_NONE) == 1);
    CHECK(pthread_join(releaser, NULL) == 0);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* Who released it and tries again at once comes after one that has waited for a millisecond. */
static void
test_hands_over_to_a_starving_waiter(void)
{
    plus_lock_init(&lock);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(plus_lock_try(&lock, plus_identity()));
        pthread_t waiter = start_holder();
        await_waiters(&lock, 1);
        CHECK(atomic_load(&lock.word) == (PLUS_LOCK_LOCKED | PLUS_LOCK_SLOW));
        await_starvation(&lock);
        CHECK(plus_lock_release(&lock) == 0);
        CHECK(!plus_lock_try(&lock, plus_identity())); /* it was never free */
        CHECK(plus_waitq_counts(&lock.queue).hand_overs == i + 1u);
        CHECK(atomic_load(&lock.word) == PLUS_LOCK_LOCKED); /* nobody else waits */
        atomic_store(&may_release, true);
        CHECK(pthread_join(waiter, NULL) == 0);
        check_as_new(&lock);
    }
}

/* Before that, the lock is free for everybody, and the waiter is on its way. */
static void
test_wakes_the_first_and_stays_free(void)
{
    uint32_t hand_overs;

    plus_lock_init(&lock);
    do {
        CHECK(acquire(&lock, PATIENT, HEEDS_NONE) == 1);
        pthread_t waiter = start_holder();
        await_waiters(&lock, 1);
        no_hand_over_for_now();
        hand_overs = plus_waitq_counts(&lock.queue).hand_overs;
        CHECK(plus_lock_release(&lock) == 0);
        bool stolen = plus_lock_try(&lock, plus_identity());
        hand_overs = plus_waitq_counts(&lock.queue).hand_overs - hand_overs;
        CHECK(!stolen || hand_overs == 0);
        if (stolen) {
            await_waiters(&lock, 1); /* it came in vain, and is in its place again */
            CHECK(!atomic_load(&acquired));
            CHECK(plus_lock_release(&lock) == 0);
        }
        atomic_store(&may_release, true);
        CHECK(pthread_join(waiter, NULL) == 0);
        check_as_new(&lock);
    } while (hand_overs > 0); /* this thread did not run for a millisecond: again */
}

/* --- interrupted by a signal; one thread is enough */

static void
no_handler(int signal_number)
{
    (void)signal_number;
}

static void
queue_up(struct plus_waiter *waiters, unsigned count)
{
    plus_lock_init(&lock);
    CHECK(plus_lock_try(&lock, plus_identity()));
    for (unsigned i = 0; i < count; i++) {
        plus_waiter_init(&waiters[i], true);
        CHECK(plus_lock_enqueue(&lock, &waiters[i]));
    }
}

/* False if this thread did not run for so long that the second waiter starved. */
static bool
taken_by_the_handler(struct plus_waiter *first, struct plus_waiter *second)
{
    no_hand_over_for_now();
    CHECK(plus_lock_release(&lock) == 0);
    if (plus_waitq_counts(&lock.queue).hand_overs > 0) {
        return false;
    }
    CHECK(plus_lock_try(&lock, first->identity));
    CHECK(plus_lock_wait_nogil(&lock, second, PATIENT) == PLUS_WAIT_WOKEN); /* not the first */
    CHECK(!plus_lock_after_wake(&lock, second));
    return true;
}

static void
test_is_out_while_handlers_run(void)
{
    struct plus_waiter waiters[2];

    do {
        queue_up(waiters, 2);
        CHECK(plus_waiter_interrupt(&lock.queue, &waiters[0]) == PLUS_WAIT_SIGNAL);
        CHECK(lock.queue.head == &waiters[1] && lock.queue.tail == &waiters[1]);
        CHECK(atomic_load(&lock.word) == (PLUS_LOCK_LOCKED | PLUS_LOCK_SLOW));
    } while (!taken_by_the_handler(&waiters[0], &waiters[1]));
    CHECK(plus_lock_release(&lock) == 0); /* nobody is queued */
    check_as_new(&lock);
    CHECK(plus_lock_try(&lock, waiters[0].identity));
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

static void
test_leaves_no_trace_when_interrupted(void)
{
    struct plus_waiter waiter;

    queue_up(&waiter, 1);
    CHECK(plus_waiter_interrupt(&lock.queue, &waiter) == PLUS_WAIT_SIGNAL);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
    CHECK(plus_waitq_counts(&lock.queue).timeouts == 0);
}

static void
test_comes_back_to_its_place(void)
{
    struct plus_waiter w[3];

    for (unsigned i = 0; i < 3; i++) {
        queue_up(w, 3);
        w[1].start_ns = w[0].start_ns + 1u; /* the clock may be coarse */
        w[2].start_ns = w[0].start_ns + 2u;
        CHECK(plus_waiter_interrupt(&lock.queue, &w[i]) == PLUS_WAIT_SIGNAL);
        CHECK(lock.queue.length == 2);
        CHECK(plus_lock_enqueue(&lock, &w[i]));
        CHECK(lock.queue.head == &w[0] && w[0].next == &w[1] && w[1].next == &w[2]);
        CHECK(lock.queue.tail == &w[2] && w[2].prev == &w[1] && w[1].prev == &w[0]);
        CHECK(plus_waitq_counts(&lock.queue).waits == 3);
        CHECK(plus_waitq_counts(&lock.queue).contended == 3);
    }
}

/* The dead line passes while handlers run. */
static void
test_is_late_after_handlers(void)
{
    struct plus_waiter waiter;

    queue_up(&waiter, 1);
    do { /* it may have polled, and looks for signals once before it sleeps */
        CHECK(plus_waiter_interrupt(&lock.queue, &waiter) == PLUS_WAIT_SIGNAL);
        CHECK(plus_lock_enqueue(&lock, &waiter));
    } while (plus_lock_wait_nogil(&lock, &waiter, 1) == PLUS_WAIT_SIGNAL);
    CHECK(!waiter.queued);
    CHECK(plus_waitq_counts(&lock.queue).timeouts == 1);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* Free by the time that the handlers are over. */
static void
test_is_free_after_handlers(void)
{
    struct plus_waiter waiter;

    queue_up(&waiter, 1);
    CHECK(plus_waiter_interrupt(&lock.queue, &waiter) == PLUS_WAIT_SIGNAL);
    CHECK(plus_lock_release(&lock) == 0);
    CHECK(!plus_lock_enqueue(&lock, &waiter));
    CHECK(plus_lock_after_wake(&lock, &waiter));
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* Its wait was ended before the handlers could run: no signal any more. */
static void
test_ended_before_it_was_interrupted(void)
{
    struct plus_waiter waiter;

    do {
        queue_up(&waiter, 1);
        no_hand_over_for_now();
        CHECK(plus_lock_release(&lock) == 0);
    } while (plus_waitq_counts(&lock.queue).hand_overs > 0);
    CHECK(plus_waiter_interrupt(&lock.queue, &waiter) == PLUS_WAIT_WOKEN);
    CHECK(plus_lock_after_wake(&lock, &waiter));
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);

    queue_up(&waiter, 1);
    await_starvation(&lock);
    CHECK(plus_lock_release(&lock) == 0);
    CHECK(plus_waiter_interrupt(&lock.queue, &waiter) == PLUS_WAIT_GRANTED);
    CHECK(atomic_load(&lock.owner) == waiter.identity);
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);
}

/* --- many threads */

#define THREADS 6
#define ROUNDS 8000

struct worker {
    pthread_t thread;
    uint64_t random;
    bool timed;
    enum handling handling;
};

static void
work(uint64_t dice)
{
    section();
    for (uint64_t i = 0; i < dice % 64u; i++) {
        __asm__ __volatile__("" ::: "memory");
    }
    if (dice % 256u == 0) {
        sched_yield();
    }
    if (dice % 4096u == 0) {
        usleep(1500); /* somebody starves */
    }
    if (mix.slow && dice % 64u == 1) {
        usleep(300);
    }
    section();
}

static void *
work_in_turns(void *argument)
{
    struct worker *self = argument;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t dice = next_random(&self->random);
        uint64_t deadline =
            self->timed ? plus_now_ns() + (dice >> 16) % 50000u : PLUS_FUTEX_NO_DEADLINE;

        switch (acquire(&lock, deadline, self->handling)) {
        case 1:
            work(dice);
            atomic_fetch_add(&mix.acquired, 1);
            CHECK(plus_lock_release(&lock) == 0);
            break;
        case 0:
            CHECK(self->timed);
            atomic_fetch_add(&mix.timed_out, 1);
            break;
        default:
            CHECK(self->handling == LEAVES);
            atomic_fetch_add(&mix.left, 1);
            break;
        }
    }
    atomic_fetch_sub(&mix.at_work, 1);
    return NULL;
}

static void
interrupt_all(const struct worker *workers, unsigned count)
{
    while (atomic_load(&mix.at_work) > 0) {
        for (unsigned i = 0; i < count; i++) {
            if (workers[i].handling != HEEDS_NONE) {
                pthread_kill(workers[i].thread, SIGUSR1);
            }
        }
        usleep(200);
    }
}

/* Untimed threads among the others: if a wake-up is lost, one of them never comes back. */
static void
test_one_at_a_time(unsigned count, unsigned timed, unsigned leaving, unsigned taking)
{
    struct worker workers[THREADS];

    plus_lock_init(&lock);
    mix.guarded = mix.copy = 0;
    atomic_store(&mix.acquired, 0);
    atomic_store(&mix.timed_out, 0);
    atomic_store(&mix.left, 0);
    atomic_store(&mix.nested, 0);
    atomic_store(&mix.at_work, count);
    mix.slow = taking > 0;
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){
            .random = 0x9e3779b97f4a7c15u * (i + 1u),
            .timed = i >= count - timed,
        };
        if (i < leaving + taking) {
            workers[i].handling = i < leaving ? LEAVES : TAKES_IT;
        }
        CHECK(pthread_create(&workers[i].thread, NULL, work_in_turns, &workers[i]) == 0);
    }
    interrupt_all(workers, count);
    for (unsigned i = 0; i < count; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }
    CHECK(mix.guarded == 2u * atomic_load(&mix.acquired) + atomic_load(&mix.nested));
    CHECK(atomic_load(&mix.acquired) + atomic_load(&mix.timed_out) + atomic_load(&mix.left) ==
          (uint64_t)count * ROUNDS);
    CHECK(taking == 0 || atomic_load(&mix.nested) > 0);
    check_as_new(&lock);
    struct plus_wait_counts counts = plus_waitq_counts(&lock.queue);
    CHECK(counts.timeouts == atomic_load(&mix.timed_out));
    CHECK(counts.waits == counts.contended);
    printf("%u threads: acquired %llu, nested %llu, timed out %llu, left %llu, waits %u, "
           "hand-overs %u\n",
           count, (unsigned long long)atomic_load(&mix.acquired),
           (unsigned long long)atomic_load(&mix.nested),
           (unsigned long long)atomic_load(&mix.timed_out),
           (unsigned long long)atomic_load(&mix.left), counts.waits, counts.hand_overs);
}

/* --- fork */

static void
nothing_to_do(void)
{
}

static void
after_fork_child(void)
{
    plus_spin_atfork_child();
    plus_waitq_atfork_child();
}

static const struct plus_fork_hooks fork_hooks = {nothing_to_do, nothing_to_do, after_fork_child};

static void
check_child(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct plus_lock others;

static void *
wait_for_others(void *unused)
{
    (void)unused;
    CHECK(acquire(&others, PATIENT, HEEDS_NONE) == 1);
    CHECK(plus_lock_release(&others) == 0);
    return NULL;
}

/* `lock` is held by a thread that the child does not have; `others` by the one that forks. */
static void
look_from_the_child(void)
{
    CHECK(plus_lock_is_locked(&lock)); /* nobody can ask whether its owner is still there */
    CHECK(!plus_lock_try(&lock, plus_identity()));
    CHECK(acquire(&lock, 1, HEEDS_NONE) == 0);
    plus_lock_reinit(&lock);
    check_as_new(&lock);
    CHECK(plus_lock_try(&lock, plus_identity()));
    CHECK(plus_lock_release(&lock) == 0);
    check_as_new(&lock);

    CHECK(plus_lock_is_locked(&others));
    CHECK(!plus_lock_try(&others, plus_identity()));
    CHECK(acquire(&others, 1, HEEDS_NONE) == 0);
    CHECK(plus_lock_release(&others) == 0); /* to nobody */
    check_as_new(&others);
    CHECK(acquire(&others, PATIENT, HEEDS_NONE) == 1);
    CHECK(plus_lock_release(&others) == 0);
    check_as_new(&others);
}

static void
test_a_fork_keeps_the_lock_and_leaves_waiters_behind(void)
{
    pthread_t waiters[2];

    plus_lock_init(&lock);
    plus_lock_init(&others);
    pthread_t holder = start_holder();
    while (!atomic_load(&acquired)) {
        usleep(50);
    }
    CHECK(plus_lock_try(&others, plus_identity()));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(pthread_create(&waiters[i], NULL, wait_for_others, NULL) == 0);
        await_waiters(&others, i + 1u);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        look_from_the_child();
        _exit(0);
    }
    check_child(child);
    CHECK(plus_lock_is_locked(&lock)); /* here nothing has changed */
    CHECK(!plus_lock_try(&lock, plus_identity()));
    atomic_store(&may_release, true);
    CHECK(plus_lock_release(&others) == 0);
    CHECK(pthread_join(holder, NULL) == 0);
    CHECK(pthread_join(waiters[0], NULL) == 0);
    CHECK(pthread_join(waiters[1], NULL) == 0);
    check_as_new(&lock);
    check_as_new(&others);
}

/* A lock that is held in the parent with waiters behind it, made anew in the child. */
static void
test_made_anew_after_a_fork(void)
{
    pthread_t waiter;

    plus_lock_init(&others);
    CHECK(plus_lock_try(&others, plus_identity()));
    CHECK(pthread_create(&waiter, NULL, wait_for_others, NULL) == 0);
    await_waiters(&others, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        plus_lock_reinit(&others);
        check_as_new(&others);
        CHECK(plus_lock_release(&others) == -EPERM);
        CHECK(plus_waitq_counts(&others.queue).contended == 1); /* the counts go on */
        _exit(0);
    }
    check_child(child);
    CHECK(plus_lock_release(&others) == 0);
    CHECK(pthread_join(waiter, NULL) == 0);
    check_as_new(&others);
}

int
main(void)
{
    struct sigaction action = {.sa_handler = no_handler};

    alarm(240); /* a hang is a lost wake-up */
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(plus_fork_register(&fork_hooks) == 0);
    test_alone();
    test_times_out_and_leaves_no_trace();
    test_free_again_before_it_queues();
    test_keeps_its_place_after_a_wake_up_in_vain();
    test_any_thread_may_release();
    test_hands_over_to_a_starving_waiter();
    test_wakes_the_first_and_stays_free();
    test_is_out_while_handlers_run();
    test_leaves_no_trace_when_interrupted();
    test_comes_back_to_its_place();
    test_is_late_after_handlers();
    test_is_free_after_handlers();
    test_ended_before_it_was_interrupted();
    test_one_at_a_time(4, 0, 0, 0);
    test_one_at_a_time(THREADS, 2, 0, 0);
    test_one_at_a_time(THREADS, 2, 2, 0);
    test_one_at_a_time(THREADS, 2, 1, 2);
    test_a_fork_keeps_the_lock_and_leaves_waiters_behind();
    test_made_anew_after_a_fork();
    return 0;
}
