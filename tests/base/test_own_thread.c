/* How threads of our own begin and end. */
#define _GNU_SOURCE
#include "../gil/check.h"

#include "_base/process/futex.h"
#include "_base/process/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_NS 1000000u

static _Atomic uint32_t word, rounds, held; /* futex words */

static void
change(void)
{
    atomic_fetch_add(&word, 1);
    plus_futex_wake(&word, 1);
}

static void
hold(uint32_t value)
{
    atomic_store(&held, value);
    plus_futex_wake(&held, 1);
}

/* While `held` it does not look at its orders. */
static void
work(struct plus_own_thread *self)
{
    for (;;) {
        uint32_t seen = atomic_load(&word);

        while (atomic_load(&held) != 0) {
            plus_futex_wait(&held, 1, PLUS_FUTEX_NO_DEADLINE);
        }
        if (plus_own_thread_is_to_end(self)) {
            return;
        }
        atomic_fetch_add(&rounds, 1);
        plus_futex_wake(&rounds, INT32_MAX);
        plus_futex_wait(&word, seen, PLUS_FUTEX_NO_DEADLINE);
    }
}

static struct plus_own_thread worker = {.name = "worker", .run = work, .wake = change};

static void
await_round(uint32_t more_than)
{
    uint32_t now;

    while ((now = atomic_load(&rounds)) <= more_than) {
        plus_futex_wait(&rounds, now, PLUS_FUTEX_NO_DEADLINE);
    }
}

static void
test_start_and_end(void)
{
    CHECK(plus_own_thread_end(&worker, 0)); /* there is none */
    for (int i = 0; i < 50; i++) {
        uint32_t before = atomic_load(&rounds);

        CHECK(!plus_own_thread_runs(&worker));
        CHECK(plus_own_thread_start(&worker) == 0);
        CHECK(plus_own_thread_start(&worker) == 0); /* runs already */
        CHECK(plus_own_thread_runs(&worker));
        await_round(before);
        CHECK(plus_own_thread_end(&worker, PLUS_OWN_THREAD_NO_LIMIT));
    }
}

static void
test_an_order_is_taken_back(void)
{
    uint32_t before = atomic_load(&rounds);

    CHECK(plus_own_thread_start(&worker) == 0);
    await_round(before); /* it has looked at its orders, and does so again when they change */
    hold(1);
    change();
    for (int i = 0; i < 3; i++) {
        CHECK(!plus_own_thread_end(&worker, SHORT_NS));
        CHECK(plus_own_thread_runs(&worker));
    }
    before = atomic_load(&rounds);
    hold(0);
    await_round(before); /* it goes on */
    CHECK(plus_own_thread_end(&worker, PLUS_OWN_THREAD_NO_LIMIT));
}

static void *
end_it(void *ended)
{
    *(bool *)ended = plus_own_thread_end(&worker, PLUS_OWN_THREAD_NO_LIMIT);
    return NULL;
}

static void
test_two_end_it_at_once(void)
{
    for (int i = 0; i < 50; i++) {
        pthread_t threads[2];
        bool ended[2] = {false, false};

        CHECK(plus_own_thread_start(&worker) == 0);
        for (int t = 0; t < 2; t++) {
            CHECK(pthread_create(&threads[t], NULL, end_it, &ended[t]) == 0);
        }
        for (int t = 0; t < 2; t++) {
            CHECK(pthread_join(threads[t], NULL) == 0);
            CHECK(ended[t]);
        }
        CHECK(!plus_own_thread_runs(&worker));
    }
}

static bool ended_itself = true;
static char own_name[16];
static sigset_t own_mask;

static void
look(struct plus_own_thread *self)
{
    prctl(PR_GET_NAME, own_name, 0, 0, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &own_mask);
    ended_itself = plus_own_thread_end(self, PLUS_OWN_THREAD_NO_LIMIT);
}

static void
test_one_that_ends_by_itself(void)
{
    struct plus_own_thread one = {
        .name = "looks", .run = look, .wake = change, .stack_bytes = 128 * 1024};

    CHECK(plus_own_thread_start(&one) == 0);
    CHECK(plus_own_thread_join(&one, PLUS_OWN_THREAD_NO_LIMIT));
    CHECK(!plus_own_thread_runs(&one));
    CHECK(!ended_itself);
    CHECK(strcmp(own_name, "looks") == 0);
    CHECK(sigismember(&own_mask, SIGINT) == 1);
    pthread_sigmask(SIG_SETMASK, NULL, &own_mask);
    CHECK(sigismember(&own_mask, SIGINT) == 0);
}

static void
test_a_child_has_none(void)
{
    int status;

    CHECK(plus_own_thread_start(&worker) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(!plus_own_thread_runs(&worker));
        CHECK(plus_own_thread_end(&worker, 0));
#ifndef __SANITIZE_THREAD__ /* it does not allow that */
        uint32_t before = atomic_load(&rounds);
        CHECK(plus_own_thread_start(&worker) == 0);
        await_round(before);
        CHECK(plus_own_thread_end(&worker, PLUS_OWN_THREAD_NO_LIMIT));
#endif
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(plus_own_thread_runs(&worker));
    CHECK(plus_own_thread_end(&worker, PLUS_OWN_THREAD_NO_LIMIT));
}

int
main(void)
{
    test_start_and_end();
    test_an_order_is_taken_back();
    test_two_end_it_at_once();
    test_one_that_ends_by_itself();
    test_a_child_has_none();
    return 0;
}
