/* A crowd that is woken one after the other: how many are on the way, and that nobody is left asleep. */
#define _GNU_SOURCE
#include "../gil/check.h"

#include "_base/process/futex.h"
#include "threads/waiting/relay.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define CROWD 12u
#define SLEEPING 1u
/* Long enough for one who was roused although it was not its turn. */
#define SETTLE_US 20000

struct sleeper {
    _Atomic uint32_t word;
    _Atomic int tid;
    pthread_t thread;
};

static struct sleeper sleepers[CROWD];
static _Atomic unsigned roused;
static sem_t may_arrive;
static struct plus_relay *relay;

static void *
sleep_and_arrive(void *argument)
{
    struct sleeper *self = argument;

    atomic_store(&self->tid, gettid());
    plus_futex_wait(&self->word, SLEEPING, PLUS_FUTEX_NO_DEADLINE);
    atomic_fetch_add(&roused, 1);
    CHECK(sem_wait(&may_arrive) == 0);
    plus_relay_arrived(relay);
    return NULL;
}

/* Whoever does not sleep yet would be roused in vain. */
static void
await_sleep(const struct sleeper *sleeper)
{
    char path[64], state = 0;

    while (state != 'S') {
        usleep(100);
        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&sleeper->tid));
        FILE *file = atomic_load(&sleeper->tid) != 0 ? fopen(path, "r") : NULL;
        if (file != NULL) {
            CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
            fclose(file);
        }
    }
}

static void
start(void)
{
    atomic_store(&roused, 0);
    CHECK(sem_init(&may_arrive, 0, 0) == 0);
    relay = plus_relay_new(CROWD);
    CHECK(relay != NULL);
    for (unsigned i = 0; i < CROWD; i++) {
        struct sleeper *sleeper = &sleepers[i];

        atomic_store(&sleeper->word, SLEEPING);
        atomic_store(&sleeper->tid, 0);
        plus_relay_expect(relay);
        plus_relay_add(relay, &sleeper->word);
        CHECK(pthread_create(&sleeper->thread, NULL, sleep_and_arrive, sleeper) == 0);
        await_sleep(sleeper);
    }
}

static void
check_roused(unsigned count)
{
    while (atomic_load(&roused) < count) {
        usleep(50); /* for ever, if one is left asleep */
    }
    usleep(SETTLE_US);
    CHECK(atomic_load(&roused) == count);
}

static void
let_arrive(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(sem_post(&may_arrive) == 0);
    }
}

static void
join(void)
{
    for (unsigned i = 0; i < CROWD; i++) {
        CHECK(pthread_join(sleepers[i].thread, NULL) == 0);
    }
    CHECK(sem_destroy(&may_arrive) == 0);
}

static void
test_each_arrival_rouses_the_next(void)
{
    start();
    check_roused(0);
    plus_relay_start(relay);
    check_roused(PLUS_RELAY_WIDTH);
    let_arrive(1);
    check_roused(PLUS_RELAY_WIDTH + 1u);
    let_arrive(2);
    check_roused(PLUS_RELAY_WIDTH + 3u);
    let_arrive(CROWD - 3u);
    check_roused(CROWD);
    join();
}

/* Some polled, or their time was up: they arrive before all are in, and no place is lost. */
static void
test_arrivals_before_the_filling_is_over_count(void)
{
    start();
    for (unsigned i = 0; i < PLUS_RELAY_WIDTH + 1u; i++) {
        plus_relay_expect(relay);
        plus_relay_arrived(relay);
    }
    check_roused(0);
    plus_relay_start(relay);
    check_roused(2u * PLUS_RELAY_WIDTH + 1u);
    let_arrive(CROWD);
    check_roused(CROWD);
    join();
}

/* Nobody slept. */
static void
test_an_empty_one(void)
{
    relay = plus_relay_new(3);
    CHECK(relay != NULL);
    plus_relay_expect(relay);
    plus_relay_start(relay);
    plus_relay_arrived(relay); /* frees it: the leak checker sees to that */
}

int
main(void)
{
    test_each_arrival_rouses_the_next();
    test_arrivals_before_the_filling_is_over_count();
    test_an_empty_one();
    return 0;
}
