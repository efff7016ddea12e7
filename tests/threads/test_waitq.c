/* The queue of waiters under real threads: order, ends of waits, and that none is lost. */
#define _GNU_SOURCE
#include "../gil/check.h"

#include "_base/process/clock.h"
#include "_base/process/fork.h"
#include "_base/process/futex.h"
#include "_base/process/identity.h"
#include "threads/waiting/waitq.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 40 /* more than are woken in one go under the guard, twice */

static struct plus_waitq queue;

static uint32_t
length_of(struct plus_waitq *q)
{
    plus_waitq_lock(q);
    uint32_t length = q->length;
    plus_waitq_unlock(q);
    return length;
}

static void
await_length(struct plus_waitq *q, uint32_t length)
{
    while (length_of(q) != length) {
        usleep(50);
    }
}

static void
enqueue(struct plus_waitq *q, struct plus_waiter *waiter)
{
    plus_waitq_lock(q);
    plus_waitq_append(q, waiter);
    plus_waitq_unlock(q);
}

/* --- order */

static unsigned order[MANY]; /* who came out as which */
static _Atomic unsigned out;

static void *
wait_in_turn(void *argument)
{
    unsigned number = *(const unsigned *)argument;
    struct plus_waiter waiter;

    plus_waiter_init(&waiter, false);
    enqueue(&queue, &waiter);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, PLUS_FUTEX_NO_DEADLINE) == PLUS_WAIT_WOKEN);
    plus_waiter_arrived(&waiter);
    unsigned at = atomic_fetch_add(&out, 1);
    order[at] = number;
    return NULL;
}

/* Threads 0 to count - 1, queued in this order. */
static void
start_in_order(pthread_t *threads, unsigned *numbers, unsigned count)
{
    plus_waitq_init(&queue);
    atomic_store(&out, 0);
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, wait_in_turn, &numbers[i]) == 0);
        await_length(&queue, i + 1u);
    }
}

static void
test_first_come_first_woken(void)
{
    pthread_t threads[8];
    unsigned numbers[8];

    start_in_order(threads, numbers, 8);
    for (unsigned i = 0; i < 8; i++) {
        plus_waitq_wake(&queue, 1);
        CHECK(pthread_join(threads[i], NULL) == 0); /* hangs if another one came out */
        CHECK(atomic_load(&out) == i + 1u);
        CHECK(order[i] == i);
    }
    CHECK(length_of(&queue) == 0);
    CHECK(plus_waitq_counts(&queue).waits == 8);
    CHECK(plus_waitq_counts(&queue).timeouts == 0);
}

static void
test_wakes_so_many_and_no_more(void)
{
    pthread_t threads[MANY];
    unsigned numbers[MANY];

    start_in_order(threads, numbers, MANY);
    plus_waitq_wake(&queue, 0);
    CHECK(length_of(&queue) == MANY);
    plus_waitq_wake(&queue, 3);
    CHECK(length_of(&queue) == MANY - 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    plus_waitq_wake(&queue, 17);
    CHECK(length_of(&queue) == MANY - 20);
    plus_waitq_wake(&queue, UINT32_MAX);
    for (unsigned i = 3; i < MANY; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(length_of(&queue) == 0);
    plus_waitq_wake(&queue, UINT32_MAX); /* nobody is there: nothing happens */
}

/* --- back to the front after a wake-up for nothing */

static _Atomic unsigned in_vain;

static void *
wait_twice(void *unused)
{
    struct plus_waiter waiter;

    (void)unused;
    plus_waiter_init(&waiter, false);
    enqueue(&queue, &waiter);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, PLUS_FUTEX_NO_DEADLINE) == PLUS_WAIT_WOKEN);
    uint64_t start_ns = waiter.start_ns;
    plus_waitq_lock(&queue);
    plus_waitq_prepend(&queue, &waiter);
    plus_waitq_unlock(&queue);
    CHECK(waiter.start_ns == start_ns); /* one wait, however often it was woken */
    atomic_store(&in_vain, 1);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, PLUS_FUTEX_NO_DEADLINE) == PLUS_WAIT_WOKEN);
    return NULL;
}

static void
test_woken_in_vain_goes_to_the_front(void)
{
    pthread_t first, second;
    unsigned number = 1;

    plus_waitq_init(&queue);
    atomic_store(&out, 0);
    CHECK(pthread_create(&first, NULL, wait_twice, NULL) == 0);
    await_length(&queue, 1);
    CHECK(pthread_create(&second, NULL, wait_in_turn, &number) == 0);
    await_length(&queue, 2);
    plus_waitq_wake(&queue, 1);
    while (atomic_load(&in_vain) == 0) {
        usleep(50);
    }
    plus_waitq_wake(&queue, 1);
    CHECK(pthread_join(first, NULL) == 0);
    CHECK(atomic_load(&out) == 0); /* the second one waits still */
    plus_waitq_wake(&queue, 1);
    CHECK(pthread_join(second, NULL) == 0);
    CHECK(plus_waitq_counts(&queue).waits == 2);
}

/* --- time-outs */

static void
test_times_out(void)
{
    struct plus_waiter waiter;
    uint64_t start = plus_now_ns();
    uint64_t deadlines[] = {0, 1, start, start + 3u * PLUS_NS_PER_MS};
    struct plus_wait_counts counts;

    plus_waitq_init(&queue);
    for (size_t i = 0; i < 4; i++) {
        plus_waiter_init(&waiter, false);
        enqueue(&queue, &waiter);
        CHECK(plus_waiter_wait_nogil(&queue, &waiter, deadlines[i]) == PLUS_WAIT_TIMED_OUT);
        CHECK(length_of(&queue) == 0);
    }
    CHECK(plus_now_ns() >= deadlines[3]);
    counts = plus_waitq_counts(&queue);
    CHECK(counts.waits == 4 && counts.timeouts == 4);
    CHECK(counts.longest_ns <= counts.total_ns);
    CHECK(counts.total_ns <= plus_now_ns() - start);
}

/* A wait that was ended in time counts as such, however late its thread looks. */
static void
test_ended_before_the_dead_line_was_seen(void)
{
    struct plus_waiter waiter;

    plus_waitq_init(&queue);
    plus_waiter_init(&waiter, false);
    enqueue(&queue, &waiter);
    plus_waitq_wake(&queue, 1);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, 0) == PLUS_WAIT_WOKEN);
    plus_waiter_init(&waiter, false);
    enqueue(&queue, &waiter);
    plus_waitq_lock(&queue);
    CHECK(plus_waitq_end(&queue, &waiter, PLUS_WAITER_GRANTED) == NULL); /* not asleep */
    plus_waitq_unlock(&queue);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, 1) == PLUS_WAIT_GRANTED);
    CHECK(plus_waitq_counts(&queue).timeouts == 0);
}

/* --- a crowd */

static void *
wait_until_some_time(void *argument)
{
    uint64_t patience_ns = *(const unsigned *)argument * UINT64_C(100000);
    struct plus_waiter waiter;

    plus_waiter_init(&waiter, false);
    enqueue(&queue, &waiter);
    plus_waiter_wait_nogil(&queue, &waiter, plus_now_ns() + patience_ns);
    plus_waiter_arrived(&waiter);
    atomic_fetch_add(&out, 1);
    return NULL;
}

/* Whose time is up while their waits are ended, before it, after it, or never: none is left asleep. */
static void
test_a_crowd_with_dead_lines(void)
{
    pthread_t threads[MANY];
    unsigned patience[MANY];

    for (unsigned round = 0; round < 50; round++) {
        plus_waitq_init(&queue);
        atomic_store(&out, 0);
        for (unsigned i = 0; i < MANY; i++) {
            patience[i] = i % 2u == 0 ? UINT32_MAX : (i * 7u + round) % 40u;
            CHECK(pthread_create(&threads[i], NULL, wait_until_some_time, &patience[i]) == 0);
        }
        while (length_of(&queue) + atomic_load(&out) < MANY) {
            sched_yield();
        }
        plus_waitq_wake(&queue, UINT32_MAX);
        for (unsigned i = 0; i < MANY; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
        CHECK(length_of(&queue) == 0);
    }
}

/* --- starvation */

static void
test_when_a_waiter_starves(void)
{
    struct plus_waiter waiter, later;
    uint64_t start;

    plus_waitq_init(&queue);
    plus_waiter_init(&waiter, false);
    plus_waiter_init(&later, false);
    plus_waitq_lock(&queue);
    CHECK(!plus_waitq_starves(&queue, plus_now_ns()));
    plus_waitq_append(&queue, &waiter);
    plus_waitq_append(&queue, &later);
    start = waiter.start_ns;
    later.start_ns = start + 7u; /* the first one decides */
    CHECK(!plus_waitq_starves(&queue, start));
    CHECK(!plus_waitq_starves(&queue, start + PLUS_STARVING_NS - 1u));
    CHECK(plus_waitq_starves(&queue, start + PLUS_STARVING_NS));
    /* One in a millisecond: not again so soon after another. */
    queue.handed_over_ns = start + PLUS_STARVING_NS;
    CHECK(!plus_waitq_starves(&queue, start + 2u * PLUS_STARVING_NS - 1u));
    CHECK(plus_waitq_starves(&queue, start + 2u * PLUS_STARVING_NS));
    plus_waitq_remove(&queue, &waiter);
    plus_waitq_remove(&queue, &later);
    CHECK(!plus_waitq_starves(&queue, start + 3u * PLUS_STARVING_NS));
    CHECK(queue.head == NULL && queue.tail == NULL && queue.length == 0);
    plus_waitq_unlock(&queue);
}

/* --- signals */

static struct {
    struct plus_waiter waiter;
    _Atomic unsigned interruptions;
    _Atomic bool over;
    bool leaves;
    enum plus_wait_result result;
} heeding;

static void
no_handler(int signal_number)
{
    (void)signal_number;
}

static void
enqueue_again(struct plus_waitq *q, struct plus_waiter *waiter)
{
    plus_waitq_lock(q);
    plus_waitq_enqueue(q, waiter);
    plus_waitq_unlock(q);
}

/* Whether the wait goes on. */
static bool
handle_signal(struct plus_waiter *waiter)
{
    CHECK(length_of(&queue) == (waiter->stays ? 1u : 0u));
    unsigned before = atomic_fetch_add(&heeding.interruptions, 1);
    plus_waiter_resumed(waiter);
    if (heeding.leaves && before >= 1) { /* the first may be the look before it sleeps */
        if (waiter->stays) {
            plus_waiter_leave(&queue, waiter);
        }
        return false;
    }
    if (!waiter->stays) {
        enqueue_again(&queue, waiter);
    }
    return true;
}

static void *
wait_heeding_signals(void *unused)
{
    struct plus_waiter *waiter = &heeding.waiter;

    (void)unused;
    enqueue(&queue, waiter);
    do {
        heeding.result = plus_waiter_wait_nogil(&queue, waiter, PLUS_FUTEX_NO_DEADLINE);
        if (heeding.result == PLUS_WAIT_SIGNAL) {
            heeding.result = plus_waiter_interrupt(&queue, waiter);
        }
    } while (heeding.result == PLUS_WAIT_SIGNAL && handle_signal(waiter));
    atomic_store(&heeding.over, true);
    return NULL;
}

static void
interrupt(pthread_t thread)
{
    unsigned before = atomic_load(&heeding.interruptions);

    do {
        if (atomic_load(&heeding.waiter.state) == PLUS_WAITER_ASLEEP) {
            CHECK(pthread_kill(thread, SIGUSR1) == 0);
        }
        usleep(200); /* it may be on its way into the kernel: then the signal came too early */
    } while (atomic_load(&heeding.interruptions) == before);
}

static pthread_t
start_heeding(bool heeds, bool leaves, bool stays)
{
    pthread_t thread;

    plus_waitq_init(&queue);
    plus_waiter_init(&heeding.waiter, heeds);
    heeding.waiter.stays = stays;
    atomic_store(&heeding.over, false);
    atomic_store(&heeding.interruptions, 0);
    heeding.leaves = leaves;
    CHECK(pthread_create(&thread, NULL, wait_heeding_signals, NULL) == 0);
    await_length(&queue, 1);
    return thread;
}

static void
test_a_signal_ends_one_call_and_not_the_wait(bool stays)
{
    pthread_t thread = start_heeding(true, false, stays);

    interrupt(thread);
    interrupt(thread);
    plus_waitq_wake(&queue, 1);
    while (!stays && !atomic_load(&heeding.over)) {
        usleep(200); /* it may have been out for a look */
        plus_waitq_wake(&queue, 1);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(heeding.result == PLUS_WAIT_WOKEN);
    CHECK(plus_waitq_counts(&queue).waits == 1);
}

/* The signal came before the sleep: nothing ends that, but the thread looks by itself. */
static void
test_a_signal_before_the_sleep_is_seen(void)
{
    struct plus_waiter waiter;

    plus_waitq_init(&queue);
    plus_waiter_init(&waiter, true);
    enqueue(&queue, &waiter);
    for (unsigned looks = 0; !waiter.rechecked; looks++) {
        CHECK(looks < 2); /* it may have polled first */
        CHECK(plus_waiter_wait_nogil(&queue, &waiter, PLUS_FUTEX_NO_DEADLINE) == PLUS_WAIT_SIGNAL);
        CHECK(plus_waiter_interrupt(&queue, &waiter) == PLUS_WAIT_SIGNAL);
        enqueue_again(&queue, &waiter);
    }
    /* Once: from then on it sleeps. */
    uint64_t deadline_ns = plus_now_ns() + UINT64_C(100) * PLUS_NS_PER_MS;
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, deadline_ns) == PLUS_WAIT_TIMED_OUT);
}

static void
test_leaves_after_a_signal(bool stays)
{
    pthread_t thread = start_heeding(true, true, stays);

    interrupt(thread);
    if (atomic_load(&heeding.interruptions) < 2) {
        interrupt(thread);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(heeding.result == PLUS_WAIT_SIGNAL);
    CHECK(length_of(&queue) == 0);
    CHECK(plus_waitq_counts(&queue).timeouts == 0); /* it gave up, which is no time-out */
}

static void
test_other_threads_sleep_on(void)
{
    pthread_t thread = start_heeding(false, true, false);

    for (unsigned i = 0; i < 20; i++) {
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
        usleep(200);
    }
    CHECK(atomic_load(&heeding.interruptions) == 0);
    plus_waitq_wake(&queue, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(heeding.result == PLUS_WAIT_WOKEN);
}

/* Ended between the signal and the handlers: it is told, and no handler runs now. */
static void
test_ended_before_it_was_interrupted(bool stays)
{
    static const enum plus_waiter_state ends[] = {PLUS_WAITER_WOKEN, PLUS_WAITER_GRANTED};
    static const enum plus_wait_result results[] = {PLUS_WAIT_WOKEN, PLUS_WAIT_GRANTED};

    for (unsigned i = 0; i < 2; i++) {
        struct plus_waiter waiter;

        plus_waitq_init(&queue);
        plus_waiter_init(&waiter, true);
        waiter.stays = stays;
        enqueue(&queue, &waiter);
        plus_waitq_lock(&queue);
        plus_waitq_end(&queue, &waiter, ends[i]);
        plus_waitq_unlock(&queue);
        CHECK(plus_waiter_interrupt(&queue, &waiter) == results[i]);
        CHECK(length_of(&queue) == 0);
    }
}

/* Its handler raises: what it was told meanwhile is to be passed on. */
static void
test_leaves_with_news(void)
{
    struct plus_waiter first, second;

    plus_waitq_init(&queue);
    plus_waiter_init(&first, true);
    plus_waiter_init(&second, true);
    first.stays = true;
    enqueue(&queue, &first);
    enqueue(&queue, &second);
    CHECK(plus_waiter_interrupt(&queue, &first) == PLUS_WAIT_SIGNAL);
    CHECK(queue.head == &first && queue.tail == &second); /* it keeps its place */
    plus_waitq_wake(&queue, 1);
    CHECK(queue.head == &second);
    plus_waiter_resumed(&first);
    plus_waiter_leave(&queue, &first);
    CHECK(first.heard);
    CHECK(plus_waiter_interrupt(&queue, &second) == PLUS_WAIT_SIGNAL); /* not by itself */

    plus_waiter_init(&first, true);
    first.stays = true;
    enqueue(&queue, &first);
    CHECK(plus_waiter_interrupt(&queue, &first) == PLUS_WAIT_SIGNAL);
    plus_waiter_resumed(&first);
    plus_waiter_leave(&queue, &first);
    CHECK(!first.heard && length_of(&queue) == 0);
}

/* Those behind it in a relay would wait for its handlers. */
static void
test_one_that_stays_is_in_no_relay(void)
{
    struct plus_waiter waiter;

    plus_waitq_init(&queue);
    plus_waiter_init(&waiter, true);
    waiter.stays = true;
    enqueue(&queue, &waiter);
    CHECK(plus_waiter_interrupt(&queue, &waiter) == PLUS_WAIT_SIGNAL);
    CHECK(atomic_load(&waiter.rested_ns) == UINT64_MAX);
    plus_waiter_resumed(&waiter);
    plus_waiter_leave(&queue, &waiter);
}

/* --- the object may be freed by whom it served last */

static void *
wait_and_free(void *argument)
{
    struct plus_waitq *mine = argument;
    struct plus_waiter waiter;

    plus_waiter_init(&waiter, false);
    enqueue(mine, &waiter);
    CHECK(plus_waiter_wait_nogil(mine, &waiter, PLUS_FUTEX_NO_DEADLINE) == PLUS_WAIT_GRANTED);
    memset(mine, 0xAA, sizeof(*mine));
    free(mine);
    return NULL;
}

static void
test_the_last_waiter_frees_the_object(void)
{
    for (unsigned i = 0; i < 300; i++) {
        struct plus_waitq *mine = malloc(sizeof(*mine));
        pthread_t thread;

        CHECK(mine != NULL);
        plus_waitq_init(mine);
        CHECK(pthread_create(&thread, NULL, wait_and_free, mine) == 0);
        await_length(mine, 1);
        if (i % 3u != 0) {
            usleep(i % 200u); /* polling, on its way to sleep, asleep */
        }
        plus_waitq_lock(mine);
        _Atomic uint32_t *sleeper = plus_waitq_end(mine, mine->head, PLUS_WAITER_GRANTED);
        plus_waitq_unlock(mine);
        plus_waitq_rouse(sleeper); /* neither the object nor the node: both may be gone */
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* --- everything at random: what goes in comes out */

#define WAITERS 5
#define WAKERS 2
#define ROUNDS 3000

static struct {
    _Atomic uint64_t ends[4]; /* by enum plus_wait_result; SIGNAL: left */
    _Atomic uint64_t woken, granted;
    _Atomic uint64_t items_in, items_out;
    _Atomic unsigned at_work;
} mix;

static enum plus_wait_result
wait_once(struct plus_waiter *waiter, uint64_t deadline_ns)
{
    enum plus_wait_result result = plus_waiter_wait_nogil(&queue, waiter, deadline_ns);

    return result == PLUS_WAIT_SIGNAL ? plus_waiter_interrupt(&queue, waiter) : result;
}

static void *
waiter_of_the_mix(void *argument)
{
    uint64_t random = *(const uint64_t *)argument;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct plus_waiter waiter;
        uint64_t dice = next_random(&random);
        /* Half of them without a dead line: a notification that got lost would hang the run. */
        uint64_t deadline =
            dice % 2u ? PLUS_FUTEX_NO_DEADLINE : plus_now_ns() + (dice >> 8) % 100000u;
        enum plus_wait_result result;

        plus_waiter_init(&waiter, dice % 3u == 0);
        waiter.stays = dice % 2u == 0;
        enqueue(&queue, &waiter);
        while ((result = wait_once(&waiter, deadline)) == PLUS_WAIT_SIGNAL) {
            if (!waiter.stays && next_random(&random) % 2u == 0) {
                break;
            }
            plus_waiter_resumed(&waiter);
            if (!waiter.stays) {
                enqueue_again(&queue, &waiter);
            }
        }
        if (result == PLUS_WAIT_GRANTED) {
            atomic_fetch_add(&mix.items_out, (uintptr_t)waiter.item);
        }
        atomic_fetch_add(&mix.ends[result], 1);
    }
    atomic_fetch_sub(&mix.at_work, 1);
    return NULL;
}

static void
serve_one(uint64_t *random)
{
    _Atomic uint32_t *sleeper = NULL;

    plus_waitq_lock(&queue);
    struct plus_waiter *first = queue.head;
    if (first != NULL) {
        bool grant = next_random(random) % 2u;
        uint64_t item = next_random(random) % 1000u;

        first->item = (void *)(uintptr_t)item;
        atomic_fetch_add(grant ? &mix.granted : &mix.woken, 1);
        atomic_fetch_add(&mix.items_in, grant ? item : 0);
        sleeper = plus_waitq_end(&queue, first, grant ? PLUS_WAITER_GRANTED : PLUS_WAITER_WOKEN);
    }
    plus_waitq_unlock(&queue);
    plus_waitq_rouse(sleeper);
}

static void *
waker_of_the_mix(void *argument)
{
    uint64_t random = *(const uint64_t *)argument;

    while (atomic_load(&mix.at_work) > 0) {
        serve_one(&random);
        if (next_random(&random) % 8u == 0) {
            usleep(next_random(&random) % 100u); /* time to fall asleep, or to time out */
        }
    }
    return NULL;
}

static void
test_nothing_is_lost_or_doubled(void)
{
    pthread_t threads[WAITERS + WAKERS];
    uint64_t seeds[WAITERS + WAKERS];
    struct plus_wait_counts counts;

    plus_waitq_init(&queue);
    atomic_store(&mix.at_work, WAITERS);
    for (unsigned i = 0; i < WAITERS + WAKERS; i++) {
        seeds[i] = 0x9e3779b97f4a7c15u * (i + 1u);
        CHECK(pthread_create(&threads[i], NULL, i < WAITERS ? waiter_of_the_mix : waker_of_the_mix,
                             &seeds[i]) == 0);
    }
    while (atomic_load(&mix.at_work) > 0) {
        for (unsigned i = 0; i < WAITERS; i++) {
            pthread_kill(threads[i], SIGUSR1);
        }
        usleep(200);
    }
    for (unsigned i = 0; i < WAITERS + WAKERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    counts = plus_waitq_counts(&queue);
    CHECK(queue.head == NULL && queue.tail == NULL && queue.length == 0);
    CHECK(atomic_load(&mix.ends[PLUS_WAIT_WOKEN]) == atomic_load(&mix.woken));
    CHECK(atomic_load(&mix.ends[PLUS_WAIT_GRANTED]) == atomic_load(&mix.granted));
    CHECK(atomic_load(&mix.items_in) == atomic_load(&mix.items_out));
    CHECK(atomic_load(&mix.ends[PLUS_WAIT_TIMED_OUT]) == counts.timeouts);
    CHECK(counts.waits == (uint32_t)WAITERS * ROUNDS);
    CHECK(counts.spins_paid <= counts.spins && counts.spins <= counts.waits);
    CHECK(atomic_load(&mix.woken) > 0 && atomic_load(&mix.granted) > 0);
    printf("woken %llu, granted %llu, timed out %u, left %llu, polled %u\n",
           (unsigned long long)atomic_load(&mix.woken),
           (unsigned long long)atomic_load(&mix.granted), counts.timeouts,
           (unsigned long long)atomic_load(&mix.ends[PLUS_WAIT_SIGNAL]), counts.spins);
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

/* A signal handler forks: its own wait goes on in the child, the others' are not there. */
static void
test_a_fork_inside_a_wait(void)
{
    struct plus_waiter waiter;
    pthread_t other;
    unsigned number = 0;

    plus_waitq_init(&queue);
    atomic_store(&out, 0);
    CHECK(pthread_create(&other, NULL, wait_in_turn, &number) == 0);
    await_length(&queue, 1);
    plus_waiter_init(&waiter, true);
    waiter.stays = true;
    enqueue(&queue, &waiter);
    CHECK(plus_waiter_interrupt(&queue, &waiter) == PLUS_WAIT_SIGNAL);
    pid_t child = fork();
    CHECK(child >= 0);
    plus_waiter_resumed(&waiter);
    if (child == 0) {
        CHECK(length_of(&queue) == 1 && queue.head == &waiter && queue.tail == &waiter);
        plus_waitq_wake(&queue, UINT32_MAX);
        CHECK(plus_waiter_wait_nogil(&queue, &waiter, 0) == PLUS_WAIT_WOKEN);
        _exit(0);
    }
    check_child(child);
    CHECK(length_of(&queue) == 2);
    plus_waitq_wake(&queue, 2);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, 0) == PLUS_WAIT_WOKEN);
    CHECK(pthread_join(other, NULL) == 0);
}

/* The same where the waiter is out of the queue: the child begins with an empty one. */
static void
test_a_fork_while_it_is_out(void)
{
    struct plus_waiter waiter, other;

    plus_waitq_init(&queue);
    plus_waiter_init(&waiter, true);
    plus_waiter_init(&other, false);
    enqueue(&queue, &waiter);
    enqueue(&queue, &other);
    CHECK(plus_waiter_interrupt(&queue, &waiter) == PLUS_WAIT_SIGNAL);
    pid_t child = fork();
    CHECK(child >= 0);
    plus_waiter_resumed(&waiter);
    enqueue_again(&queue, &waiter);
    CHECK(queue.head == &waiter);
    CHECK(length_of(&queue) == (child == 0 ? 1u : 2u));
    plus_waitq_wake(&queue, 1);
    CHECK(plus_waiter_wait_nogil(&queue, &waiter, 0) == PLUS_WAIT_WOKEN);
    if (child == 0) {
        _exit(0);
    }
    check_child(child);
    CHECK(plus_waiter_wait_nogil(&queue, &other, 0) == PLUS_WAIT_TIMED_OUT);
}

/* Somebody is inside the guard when the process forks: the child does not wait for him. */
static void
test_a_fork_with_the_guard_held(void)
{
    plus_waitq_init(&queue);
    /* As if another thread had it: the ranks are the holder's own. */
    atomic_store(&queue.guard, plus_fork_generation << 1 | 1u);
    queue.length = 77;
    queue.head = queue.tail = (struct plus_waiter *)(uintptr_t)16; /* half changed */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(length_of(&queue) == 0);
        CHECK(queue.head == NULL && queue.tail == NULL);
        _exit(0);
    }
    check_child(child);
}

int
main(void)
{
    struct sigaction action = {.sa_handler = no_handler};

    alarm(240); /* a hang is a lost wake-up */
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(plus_fork_register(&fork_hooks) == 0);
    test_first_come_first_woken();
    test_wakes_so_many_and_no_more();
    test_woken_in_vain_goes_to_the_front();
    test_times_out();
    test_ended_before_the_dead_line_was_seen();
    test_a_crowd_with_dead_lines();
    test_when_a_waiter_starves();
    test_a_signal_ends_one_call_and_not_the_wait(false);
    test_a_signal_ends_one_call_and_not_the_wait(true);
    test_a_signal_before_the_sleep_is_seen();
    test_leaves_after_a_signal(false);
    test_leaves_after_a_signal(true);
    test_other_threads_sleep_on();
    test_ended_before_it_was_interrupted(false);
    test_ended_before_it_was_interrupted(true);
    test_leaves_with_news();
    test_one_that_stays_is_in_no_relay();
    test_the_last_waiter_frees_the_object();
    test_nothing_is_lost_or_doubled();
    test_a_fork_inside_a_wait();
    test_a_fork_while_it_is_out();
    test_a_fork_with_the_guard_held();
    return 0;
}
