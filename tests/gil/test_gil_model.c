/* A GIL in small, with the interpreter's own take and drop (see sched.h), driven hard.
 *
 * The hooks stand where the interpreter's import slots would lead.  CPU-bound threads look at the drop
 * request now and then, as the eval loop does; interactive ones give the GIL up by themselves; one
 * controller starts, stops and changes the scheduling under that load; threads come and go.  Checked:
 * mutual exclusion, no drop request inside an atomic section, that everybody gets on, and that
 * the run ends.  What the GIL guards is plain memory, so the thread sanitizer checks the hand-overs.
 */
#define _GNU_SOURCE
#include "check.h"

#include "_base/process/clock.h"
#include "gil/hooks.h"
#include "gil/scheduler/sched.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_NS (UINT64_C(1) * PLUS_NS_PER_MS)
#define MAX_THREADS 16

/* The interpreter's thread state, as far as the GIL needs it. */
struct state {
    _Atomic bool drop_request;
    _Atomic uint64_t rounds; /* how often it had the GIL */
    uint64_t random;
    bool atomic; /* uses atomic sections */
};

static struct {
    pthread_mutex_t mutex, switch_mutex;
    pthread_cond_t cond, switch_cond;
    _Atomic int locked;
    _Atomic(struct state *) last_holder;
    uint64_t switch_number;
} gil;

static struct state states[MAX_THREADS];
static _Atomic bool stopping;
static uint64_t guarded; /* by the GIL only */
static uint64_t guarded_copy;
static _Atomic uint64_t births;

static struct timespec
deadline(void)
{
    uint64_t ns = plus_now_ns() + INTERVAL_NS;

    return (struct timespec){.tv_sec = (time_t)(ns / PLUS_NS_PER_S),
                             .tv_nsec = (long)(ns % PLUS_NS_PER_S)};
}

static void
take(struct state *self)
{
    pthread_mutex_lock(&gil.mutex);
    while (atomic_load(&gil.locked)) {
        uint64_t saved = gil.switch_number;
        struct timespec until = deadline();
        int rc = plus_hook_cond_timedwait(&gil.cond, &gil.mutex, &until);

        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == ETIMEDOUT && atomic_load(&gil.locked) && gil.switch_number == saved) {
            atomic_store(&atomic_load(&gil.last_holder)->drop_request, true);
        }
    }
    pthread_mutex_lock(&gil.switch_mutex);
    atomic_store(&gil.locked, 1);
    if (atomic_load(&gil.last_holder) != self) {
        atomic_store(&gil.last_holder, self);
        gil.switch_number++;
    }
    plus_hook_cond_signal(&gil.switch_cond);
    pthread_mutex_unlock(&gil.switch_mutex);
    atomic_store(&self->drop_request, false);
    pthread_mutex_unlock(&gil.mutex);
    atomic_fetch_add(&self->rounds, 1);
}

static void
drop(struct state *self)
{
    CHECK(atomic_load(&gil.locked));
    pthread_mutex_lock(&gil.mutex);
    atomic_store(&gil.last_holder, self);
    atomic_store(&gil.locked, 0);
    plus_hook_cond_signal(&gil.cond);
    pthread_mutex_unlock(&gil.mutex);
    if (!atomic_load(&self->drop_request)) {
        return;
    }
    pthread_mutex_lock(&gil.switch_mutex);
    if (atomic_load(&gil.last_holder) == self) {
        atomic_store(&self->drop_request, false);
        plus_hook_cond_wait(&gil.switch_cond, &gil.switch_mutex);
    }
    pthread_mutex_unlock(&gil.switch_mutex);
}

/* With the GIL: what an unguarded data race would break. */
static void
work(unsigned loops)
{
    for (unsigned i = 0; i < loops; i++) {
        guarded++;
        __asm__ __volatile__("" ::: "memory");
        guarded_copy++;
        CHECK(guarded == guarded_copy);
    }
}

static void
atomic_section(struct state *self)
{
    struct plus_thread *record = plus_thread_self();

    if (plus_sched_atomic_enter(record)) {
        drop(self);
        take(self);
    }
    for (unsigned i = 0; i < 20; i++) {
        work(10 + next_random(&self->random) % 100);
        CHECK(!atomic_load(&self->drop_request));
        if (next_random(&self->random) % 16 == 0) { /* a blocking call inside, and a nested one */
            CHECK(!plus_sched_atomic_enter(record));
            drop(self);
            take(self);
            CHECK(!plus_sched_atomic_leave(record));
        }
    }
    if (plus_sched_atomic_leave(record)) {
        uint32_t sequence = plus_sched_hand_over_begins(record);
        drop(self);
        plus_sched_hand_over_nogil(sequence);
        take(self);
    }
}

static void
maybe_atomic(struct state *self)
{
    if (self->atomic && next_random(&self->random) % 8 == 0) {
        atomic_section(self);
    }
}

static void *
cpu_thread(void *argument)
{
    struct state *self = argument;

    take(self);
    while (!atomic_load(&stopping)) {
        work(300);
        maybe_atomic(self);
        if (atomic_load(&self->drop_request)) {
            drop(self);
            take(self);
        }
    }
    drop(self);
    return NULL;
}

static void *
interactive_thread(void *argument)
{
    struct state *self = argument;

    while (!atomic_load(&stopping)) {
        take(self);
        work(1 + next_random(&self->random) % 200);
        maybe_atomic(self);
        drop(self);
        switch (next_random(&self->random) % 8) {
        case 0:
            usleep(100);
            break;
        case 1:
            sched_yield();
            break;
        default:
            break;
        }
    }
    return NULL;
}

/* A thread that has the GIL a few times and ends, perhaps inside an atomic section. */
static void *
short_lived(void *argument)
{
    struct state *self = argument;

    for (unsigned i = 0; i < 3; i++) {
        take(self);
        work(50);
        if (i == 2 && self->atomic && plus_sched_atomic_enter(plus_thread_self())) {
            drop(self);
            take(self);
        }
        drop(self);
    }
    return NULL;
}

static void *
parent_thread(void *argument)
{
    struct state *self = argument;

    while (!atomic_load(&stopping)) {
        pthread_t child;
        CHECK(pthread_create(&child, NULL, short_lived, self) == 0);
        CHECK(pthread_join(child, NULL) == 0);
        atomic_fetch_add(&births, 1);
    }
    return NULL;
}

static bool
no(void)
{
    return false;
}

static bool
yes(void)
{
    return true;
}

static void
set_level(enum plus_hooks_level level)
{
    static const struct plus_gil where = {&gil.mutex, &gil.cond, &gil.switch_cond};

    plus_hooks_set(&where, level);
    pthread_cond_broadcast(&gil.cond);
}

static void
start(const struct plus_policy *policy)
{
    pthread_mutex_lock(&gil.mutex);
    plus_sched_start(policy, &(struct plus_interpreter){no, yes});
    set_level(PLUS_HOOKS_RUN);
    pthread_mutex_unlock(&gil.mutex);
}

static void
stop(enum plus_hooks_level level)
{
    pthread_mutex_lock(&gil.mutex);
    set_level(level);
    plus_sched_stop(false);
    pthread_mutex_unlock(&gil.mutex);
}

static void
track(void)
{
    pthread_mutex_lock(&gil.mutex);
    plus_sched_track();
    set_level(PLUS_HOOKS_TRACK);
    pthread_mutex_unlock(&gil.mutex);
}

static void
random_policy(struct plus_policy *policy, uint64_t *random)
{
    policy->slice_ns = (100u + next_random(random) % 5000u) * PLUS_NS_PER_US;
    policy->eager = next_random(random) % 8u == 0;
    policy->spin_ns = next_random(random) % 2u ? 20u * PLUS_NS_PER_US : 0;
    policy->batch_share = (double)(next_random(random) % 50u) / 100.0;
}

/* One run: so many threads of each kind, whether the controller changes things meanwhile, and what is
 * left of the hooks when scheduling stops (OFF only where no atomic section is used, as in
 * plus_control_stop). */
struct scenario {
    unsigned cpu, interactive, parents;
    bool changing;
    enum plus_hooks_level rest;
};

static const struct plus_policy usual = {
    .slice_ns = 2 * PLUS_NS_PER_MS,
    .spin_ns = 20 * PLUS_NS_PER_US,
    .batch_share = 0.1,
};

/* The controller, as install and uninstall do it: holding the GIL. */
static void
control(uint64_t seconds, const struct scenario *s)
{
    struct state *self = &states[MAX_THREADS - 1];
    struct plus_policy policy = usual;
    uint64_t until = plus_now_ns() + seconds * PLUS_NS_PER_S;
    uint64_t random = 88172645463325252u;

    while (plus_now_ns() < until) {
        usleep(5000);
        take(self);
        switch (s->changing ? next_random(&random) % 4u : 4u) {
        case 0:
            stop(s->rest);
            break;
        case 1:
            random_policy(&policy, &random);
            start(&policy);
            break;
        case 2:
            if (!plus_sched_running() && s->rest == PLUS_HOOKS_TRACK) {
                track();
            }
            break;
        case 3:
            start(&policy);
            stop(s->rest);
            start(&policy);
            break;
        default:
            break;
        }
        drop(self);
    }
}

static void
say_where(int signal_number)
{
    static const char message[] = "the run does not end: a wake-up was lost\n";

    (void)signal_number;
    if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) {
        _exit(3);
    }
    abort(); /* a core file, or a debugger, shows who waits for what */
}

static void
run(const struct scenario *s, uint64_t seconds)
{
    pthread_t threads[MAX_THREADS];
    uint64_t before[MAX_THREADS];
    struct plus_policy policy = usual;
    unsigned count = s->cpu + s->interactive + s->parents;
    struct state *self = &states[MAX_THREADS - 1];

    atomic_store(&stopping, false);
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        states[i].random = 0x9e3779b97f4a7c15u * (i + 1u);
        states[i].atomic =
            s->rest == PLUS_HOOKS_TRACK && (i % 2u == 1 || i >= s->cpu + s->interactive);
        before[i] = atomic_load(&states[i].rounds);
    }
    take(self);
    start(&policy);
    drop(self);
    for (unsigned i = 0; i < count; i++) {
        void *(*body)(void *) = i < s->cpu                    ? cpu_thread
                                : i < s->cpu + s->interactive ? interactive_thread
                                                              : parent_thread;
        CHECK(pthread_create(&threads[i], NULL, body, &states[i]) == 0);
    }
    control(seconds, s);
    if (!s->changing) {
        for (unsigned i = 0; i < count; i++) {
            /* Everybody gets on: also each CPU thread beside interactive ones that never rest. */
            uint64_t seen = atomic_load(&states[i].rounds);
            while (atomic_load(&states[i].rounds) == seen) {
                usleep(1000);
            }
        }
    }
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(atomic_load(&states[i].rounds) > before[i]);
    }
    take(self);
    stop(s->rest);
    drop(self);
    CHECK(guarded == guarded_copy);
}

#define TRACK PLUS_HOOKS_TRACK
#define OFF PLUS_HOOKS_OFF

static const struct scenario scenarios[] = {
    {.cpu = 1, .interactive = 1, .rest = TRACK},
    {.cpu = 2, .rest = TRACK},
    {.interactive = 4, .rest = TRACK},
    {.cpu = 3, .interactive = 3, .parents = 1, .rest = TRACK},
    {.cpu = 2, .interactive = 2, .parents = 1, .rest = TRACK, .changing = true},
    {.cpu = 1, .interactive = 8, .rest = TRACK, .changing = true},
    {.cpu = 2, .interactive = 2, .parents = 1, .rest = OFF, .changing = true},
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* test_gil_model [SECONDS [SCENARIO]] */
int
main(int argc, char **argv)
{
    pthread_condattr_t monotonic;
    /* The thread sanitizer, which sees what happens between the threads, gets more of it to see. */
    const char *sanitizer = getenv("CPYTHONPLUS_SANITIZER");
    uint64_t seconds = sanitizer != NULL && strcmp(sanitizer, "thread") == 0 ? 18 : 3;
    size_t only = argc > 2 ? strtoul(argv[2], NULL, 10) : SCENARIOS;

    if (argc > 1) {
        seconds = strtoul(argv[1], NULL, 10);
    }
    signal(SIGALRM, say_where);
    alarm((unsigned)seconds + 240u);
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&gil.cond, &monotonic) == 0);
    CHECK(pthread_cond_init(&gil.switch_cond, &monotonic) == 0);
    CHECK(pthread_mutex_init(&gil.mutex, NULL) == 0);
    CHECK(pthread_mutex_init(&gil.switch_mutex, NULL) == 0);
    CHECK(plus_threads_init() == 0);
    plus_threads_on_exit(plus_sched_forget);
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (only == SCENARIOS || only == i) {
            /* Whole seconds would be too long a step: each gets its part of them, at least one. */
            uint64_t part = only == i ? seconds : seconds / SCENARIOS;
            run(&scenarios[i], part > 0 ? part : 1);
        }
    }
    struct plus_sched_counts *counts = calloc(1, sizeof(*counts));
    CHECK(counts != NULL);
    plus_sched_counts(counts);
    printf("switches %llu, forced %llu, requests %llu, at once %llu, protected %llu, births %llu\n",
           (unsigned long long)counts->switches, (unsigned long long)counts->forced_switches,
           (unsigned long long)counts->requests, (unsigned long long)counts->immediate_requests,
           (unsigned long long)counts->protected_runs, (unsigned long long)atomic_load(&births));
    printf("longest wait: interactive %.3f ms, batch %.3f ms\n",
           (double)counts->waits[0].max_ns / 1e6, (double)counts->waits[1].max_ns / 1e6);
    CHECK(counts->switches > 0);
    CHECK(only != SCENARIOS || (counts->requests > 0 && counts->immediate_requests > 0));
    fflush(stdout);
    free(counts);
    return 0;
}
