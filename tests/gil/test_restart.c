/* The scheduler stops and starts again before a sleeper has seen it, and the one who looked after the waiters has the
 * GIL: the sleeper must still come to ask.  The mutex decides the order: whoever has it makes its steps, and the
 * sleeper, which needs it, sees what is left of them. */
#define _GNU_SOURCE
#include "check.h"

#include "_base/process/clock.h"
#include "gil/scheduler/sched.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define INTERVAL_NS (UINT64_C(1) * PLUS_NS_PER_MS)
#define LONG_NS (UINT64_C(1000) * PLUS_NS_PER_S)

static bool
no(void)
{
    return false;
}

static const struct plus_interpreter interpreter = {no, no};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool restarted; /* by the mutex */
static _Atomic bool has_asked;
static _Atomic uint64_t interval_ns = LONG_NS;

static void
start(bool eager)
{
    const struct plus_policy policy = {.slice_ns = INTERVAL_NS, .eager = eager};

    plus_sched_start(&policy, &interpreter);
}

static void *
sleeper(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (plus_sched_wait(&mutex, plus_now_ns() + atomic_load(&interval_ns)) != ETIMEDOUT ||
           !restarted) {
    }
    pthread_mutex_unlock(&mutex);
    atomic_store(&has_asked, true);
    return unused;
}

static void
await_question(void)
{
    for (unsigned i = 0; i < 3000 && !atomic_load(&has_asked); i++) {
        usleep(10 * 1000);
    }
}

/* Asks at once, and takes the GIL from the first holder, which stops the scheduler before it lets go.  No thread ends
 * while it has the GIL. */
static void *
second_holder(void *unused)
{
    pthread_mutex_lock(&mutex);
    start(true);
    while (plus_sched_wait(&mutex, plus_now_ns() + INTERVAL_NS) != ETIMEDOUT) {
    }
    plus_sched_stop(false);
    plus_sched_released(&mutex);
    plus_sched_acquired();
    atomic_store(&interval_ns, INTERVAL_NS);
    start(false);
    restarted = true;
    pthread_mutex_unlock(&mutex);
    await_question();
    pthread_mutex_lock(&mutex);
    plus_sched_released(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int
main(void)
{
    pthread_t threads[2];

    CHECK(plus_threads_init() == 0);
    pthread_mutex_lock(&mutex);
    start(false);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_create(&threads[0], NULL, sleeper, NULL) == 0);
    /* It has asked then, and sleeps in the queue; if it does not, the test shows less. */
    usleep(100 * 1000);
    pthread_mutex_lock(&mutex);
    plus_sched_acquired(); /* so nobody has asked this holder */
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_create(&threads[1], NULL, second_holder, NULL) == 0);
    await_question();
    CHECK(atomic_load(&has_asked));
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(pthread_join(threads[1], NULL) == 0);
    return 0;
}
