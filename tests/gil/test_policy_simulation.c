/* The policy in virtual time, over whole mixes of threads: nothing sleeps, no clock is read, and each
 * run is the same.  The engine below does what sched.c and the interpreter do between them, with a
 * fixed price for a change of threads.
 *
 *     test_policy_simulation          checks the promises over some thousand random mixes
 *     test_policy_simulation table    prints requests beside jobs against requests alone
 */
#include "check.h"

#include "gil/scheduler/ready.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define INTERVAL_NS (5 * MS)
#define CHANGE_NS (10 * US)
#define BETWEEN_NS (10 * US) /* from one answer to reading the next request, if it is there */
#define MAX_THREADS 96u
#define BACKLOG 8192u
#define MAX_ANSWERS 2000000u

enum kind {
    JOB,     /* computes for ever */
    CHATTY,  /* computes for ever, and gives the GIL up for `period` after each `work` */
    HANDLER, /* requests of `work` that come at random, one in `period` on average */
    LIGHT,   /* sleeps for `period`, computes `work` */
};

struct actor {
    struct plus_thread thread; /* first: one is the other */
    enum kind kind;
    uint64_t work, period;
    uint64_t wakes_ns; /* NEVER: waits for the GIL, or has it */
    uint64_t left;     /* of the work at hand */
    uint64_t next_request_ns;
    uint64_t requests[BACKLOG]; /* when they came */
    unsigned first_request, last_request;
    uint64_t held_ns, longest_wait_ns;
};

static struct actor actors[MAX_THREADS];
static unsigned count;
static struct plus_ready ready;
static struct plus_policy policy = {.slice_ns = 10 * MS, .spin_ns = 20 * US, .batch_share = 0.05};
static struct actor *holder;
static uint64_t now, protected_until_ns, random_state;
static uint64_t warm_ns; /* waits are not recorded before */
static double *answers;  /* latencies in ms */
static size_t answered;

static double
uniform(void)
{
    return (double)(next_random(&random_state) >> 11) / 9007199254740992.0;
}

static uint64_t
exponential(uint64_t mean)
{
    return (uint64_t)(-log(1.0 - uniform()) * (double)mean) + 1u;
}

static struct actor *
actor_of(struct plus_thread *thread)
{
    return (struct actor *)(void *)thread;
}

static void
begin(void)
{
    count = 0;
    ready = (struct plus_ready){0};
    holder = NULL;
    now = 1;
    protected_until_ns = 0;
    answered = 0;
    warm_ns = 0;
    random_state = 88172645463325252u;
}

static struct actor *
add(enum kind kind, uint64_t work, uint64_t period, uint64_t start_ns)
{
    struct actor *actor = &actors[count++];

    CHECK(count <= MAX_THREADS);
    memset(actor, 0, sizeof(*actor));
    actor->kind = kind;
    actor->work = work;
    actor->period = period;
    actor->wakes_ns = start_ns;
    if (kind == HANDLER) {
        actor->next_request_ns = actor->wakes_ns = start_ns + exponential(period);
    }
    return actor;
}

/* False: a handler that woke up and has nothing to do; it sleeps until the next request. */
static bool
has_work(struct actor *actor)
{
    if (actor->left > 0) {
        return true;
    }
    if (actor->kind != HANDLER) {
        actor->left = actor->kind == JOB ? NEVER : actor->work;
        return true;
    }
    while (actor->next_request_ns <= now) {
        CHECK(actor->last_request - actor->first_request < BACKLOG);
        actor->requests[actor->last_request++ % BACKLOG] = actor->next_request_ns;
        actor->next_request_ns += exponential(actor->period);
    }
    if (actor->first_request == actor->last_request) {
        actor->wakes_ns = actor->next_request_ns;
        return false;
    }
    actor->left = actor->work;
    return true;
}

static void
take(struct actor *actor)
{
    struct plus_thread *thread = &actor->thread;

    CHECK(holder == NULL);
    holder = actor;
    plus_ready_begin_turn(&ready, thread);
    thread->acquired_ns = now;
    if (thread->wait_start_ns != 0) {
        uint64_t waited = now - thread->wait_start_ns;

        plus_policy_waited(&thread->usage, waited);
        if (waited > PLUS_LIGHT_NS) {
            thread->impatience = PLUS_IMPATIENCE;
        }
        else if (thread->impatience > 0) {
            thread->impatience--;
        }
        if (waited > actor->longest_wait_ns && thread->wait_start_ns > warm_ns) {
            actor->longest_wait_ns = waited;
        }
    }
    thread->wait_start_ns = 0;
    thread->level = plus_policy_level(&thread->usage, 0);
    plus_ready_count(&ready, now, thread->level);
}

static void
grant(void)
{
    enum plus_protection protection;
    struct plus_thread *next = plus_ready_pick(&ready, &policy, &protection);

    if (next != NULL) {
        plus_ready_remove(&ready, next);
        now += CHANGE_NS;
        take(actor_of(next));
        protected_until_ns =
            protection == PLUS_UNPROTECTED ? 0 : now + plus_ready_protected_ns(&policy, protection);
    }
}

static void
enqueue(struct actor *actor)
{
    struct plus_thread *thread = &actor->thread;

    thread->level = plus_policy_level(&thread->usage, 0);
    plus_ready_begin_wait(thread);
    thread->wait_start_ns = now;
    plus_ready_insert(&ready, thread);
    if (holder != NULL) {
        uint64_t held = now - holder->thread.acquired_ns;
        plus_ready_count(&ready, now, plus_policy_level(&holder->thread.usage, held));
    }
}

static void
end_hold(bool asked)
{
    struct plus_thread *thread = &holder->thread;
    uint64_t hold = now - thread->acquired_ns;

    holder->held_ns += hold;
    if (holder->left != NEVER) {
        holder->left -= hold < holder->left ? hold : holder->left;
    }
    unsigned level = plus_policy_level(&thread->usage, hold);
    uint64_t slice = plus_policy_slice_ns(level, policy.slice_ns, INTERVAL_NS);
    plus_ready_held(&ready, &policy, now, level, hold);
    plus_policy_held(&thread->usage, hold, asked);
    plus_ready_end_turn(thread, hold, protected_until_ns != 0 ? 0 : slice);
    thread->acquired_ns = 0;
    thread->released_ns = now;
    holder = NULL;
    protected_until_ns = 0;
}

/* The holder was asked: it waits until the next has the GIL, then for the GIL. */
static void
interrupt(void)
{
    struct actor *actor = holder;

    end_hold(true);
    grant();
    actor->thread.released_ns = now;
    if (has_work(actor)) {
        enqueue(actor);
    }
}

static void
finish(void)
{
    struct actor *actor = holder;

    end_hold(false);
    if (actor->kind == HANDLER) {
        CHECK(answered < MAX_ANSWERS);
        uint64_t came = actor->requests[actor->first_request++ % BACKLOG];
        answers[answered++] = (double)(now - came) / 1e6;
        actor->wakes_ns = now + BETWEEN_NS;
    }
    else {
        actor->wakes_ns = now + actor->period;
    }
    grant();
}

static void
wake(struct actor *actor)
{
    struct plus_thread *thread = &actor->thread;

    actor->wakes_ns = NEVER;
    if (!has_work(actor)) {
        return;
    }
    if (thread->released_ns != 0) {
        plus_policy_away(&thread->usage, now - thread->released_ns);
        plus_ready_away(thread, now - thread->released_ns, policy.slice_ns);
    }
    if (holder == NULL && ready.occupied == 0) {
        take(actor);
        return;
    }
    enqueue(actor);
    if (holder == NULL) {
        grant();
    }
}

static struct actor *
next_to_wake(void)
{
    struct actor *next = NULL;

    for (unsigned i = 0; i < count; i++) {
        if (actors[i].wakes_ns != NEVER && (next == NULL || actors[i].wakes_ns < next->wakes_ns)) {
            next = &actors[i];
        }
    }
    return next;
}

static void
run(uint64_t until_ns)
{
    while (now < until_ns) {
        struct actor *waker = next_to_wake();
        struct plus_thread *first = plus_ready_first(&ready);
        uint64_t wakes_ns = waker != NULL ? waker->wakes_ns : NEVER;
        uint64_t done_ns = NEVER, decide_ns = NEVER;

        CHECK(holder != NULL || first == NULL); /* the GIL is never free while somebody waits */
        if (holder != NULL && holder->left != NEVER) {
            done_ns = holder->thread.acquired_ns + holder->left;
        }
        if (holder != NULL && first != NULL) {
            struct plus_situation situation = {
                .now_ns = now,
                .interval_ns = INTERVAL_NS,
                .slice_ns = policy.slice_ns,
                .self = first,
                .self_is_first = true,
                .holder = &holder->thread,
                .holder_level =
                    plus_policy_level(&holder->thread.usage, now - holder->thread.acquired_ns),
                .protected_until_ns = protected_until_ns,
            };
            struct plus_decision decision = plus_policy_decide(&policy, &situation);
            if (decision.ask) {
                interrupt();
                continue;
            }
            CHECK(decision.deadline_ns > now);
            decide_ns = decision.deadline_ns;
        }
        if (wakes_ns <= done_ns && wakes_ns <= decide_ns) {
            if (wakes_ns == NEVER) {
                break;
            }
            now = wakes_ns > now ? wakes_ns : now;
            wake(waker);
        }
        else if (done_ns <= decide_ns) {
            now = done_ns > now ? done_ns : now;
            finish();
        }
        else {
            now = decide_ns;
        }
    }
}

/* ------------------------------------------------------------------------------------------------
 * Requests beside jobs.
 */

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct outcome {
    double p50_ms, p99_ms, jobs_share;
};

/* Requests that want 30 % of a core over so many connections, a thread each. */
static struct outcome
requests(unsigned connections, uint64_t work, unsigned jobs)
{
    uint64_t total = work < 2 * MS ? 20 * S : 200 * S;
    uint64_t period = work * connections * 10u / 3u;
    uint64_t held = 0;

    begin();
    for (unsigned i = 0; i < connections; i++) {
        add(HANDLER, work, period, 1);
    }
    run(2 * S);
    answered = 0;
    for (unsigned i = 0; i < jobs; i++) {
        add(JOB, 0, 0, now);
    }
    uint64_t since = now;
    run(total);
    for (unsigned i = connections; i < count; i++) {
        held += actors[i].held_ns;
    }
    CHECK(answered > 100);
    qsort(answers, answered, sizeof(*answers), compare);
    return (struct outcome){
        .p50_ms = answers[answered / 2],
        .p99_ms = answers[answered * 99 / 100],
        .jobs_share = (double)held / (double)(now - since),
    };
}

static const uint64_t works[] = {300 * US, 2 * MS, 5 * MS, 15 * MS, 50 * MS};
static const unsigned job_counts[] = {1, 2, 8};
static const unsigned connection_counts[] = {1, 4, 16, 64};

static void
print_table(void)
{
    printf(
        "connections  work ms  alone p50, p99 ms | beside 1, 2, 8 jobs: times p50, p99; share\n");
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned w = 0; w < 5; w++) {
            struct outcome alone = requests(connection_counts[c], works[w], 0);

            printf("%11u %8.1f %9.2f %7.2f   ", connection_counts[c], (double)works[w] / 1e6,
                   alone.p50_ms, alone.p99_ms);
            for (unsigned j = 0; j < 3; j++) {
                struct outcome beside = requests(connection_counts[c], works[w], job_counts[j]);
                printf(" | %.2f %.2f %.2f", beside.p50_ms / alone.p50_ms,
                       beside.p99_ms / alone.p99_ms, beside.jobs_share);
            }
            printf("\n");
        }
    }
}

/* From the beginning of the jobs on.  One connection with long requests has bursts of some hundred
 * milliseconds, which nobody can tell from a job while they last: only its median is promised. */
static void
test_requests_are_served_as_if_alone(void)
{
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned w = 0; w < 5; w++) {
            struct outcome alone = requests(connection_counts[c], works[w], 0);

            for (unsigned j = 0; j < 3; j++) {
                struct outcome beside = requests(connection_counts[c], works[w], job_counts[j]);
                CHECK(beside.p50_ms <= 1.15 * alone.p50_ms);
                CHECK(beside.p99_ms <= 1.3 * alone.p99_ms ||
                      (connection_counts[c] == 1 && works[w] > 5 * MS));
                CHECK(beside.jobs_share > 0.66);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------
 * Promises over random mixes.
 */

static uint64_t
random_between(uint64_t least, uint64_t greatest)
{
    return least + next_random(&random_state) % (greatest - least + 1u);
}

/* From now on holds and waits are recorded. */
static void
forget_the_warming_up(void)
{
    for (unsigned i = 0; i < count; i++) {
        actors[i].held_ns = actors[i].longest_wait_ns = 0;
    }
    warm_ns = now;
}

/* Threads that never rest share what is left, in time and not in turns, whether they give the GIL up
 * now and then or not; a light thread waits behind nobody but its like and one protected run. */
static void
test_a_random_mix(uint64_t seed)
{
    begin();
    random_state = seed;
    unsigned jobs = (unsigned)random_between(1, 6), chatty = (unsigned)random_between(0, 2);
    unsigned handlers = (unsigned)random_between(0, 6), light = (unsigned)random_between(1, 4);

    for (unsigned i = 0; i < jobs; i++) {
        add(JOB, 0, 0, 1);
    }
    for (unsigned i = 0; i < chatty; i++) {
        add(CHATTY, random_between(50 * US, 500 * US), random_between(1 * US, 10 * US), 1);
    }
    for (unsigned i = 0; i < handlers; i++) {
        uint64_t work = random_between(100 * US, 30 * MS);
        add(HANDLER, work, work * random_between(15, 40), 1);
    }
    for (unsigned i = 0; i < light; i++) {
        add(LIGHT, random_between(5 * US, 300 * US), random_between(5 * MS, 50 * MS), 1);
    }
    run(4 * S);
    forget_the_warming_up();
    run(12 * S);

    uint64_t least = NEVER, greatest = 0;
    for (unsigned i = 0; i < jobs + chatty; i++) {
        least = actors[i].held_ns < least ? actors[i].held_ns : least;
        greatest = actors[i].held_ns > greatest ? actors[i].held_ns : greatest;
    }
    CHECK(least > 0 && (double)least > 0.75 * (double)greatest);
    for (unsigned i = count - light; i < count; i++) {
        /* A handler or another light one is left alone for 1 ms, looked at after 5 at the latest. */
        uint64_t bound = (handlers + light) * INTERVAL_NS + 2 * MS;
        CHECK(actors[i].longest_wait_ns <= bound);
    }
}

/* Threads that rest, but together want more than there is: jobs get their share all the same, and each of
 * them its turn, which takes as long as the share makes it. */
static void
test_nobody_starves(uint64_t seed)
{
    begin();
    random_state = seed;
    unsigned jobs = (unsigned)random_between(1, 6), light = (unsigned)random_between(4, 12);
    uint64_t held = 0;

    for (unsigned i = 0; i < jobs; i++) {
        add(JOB, 0, 0, 1);
    }
    run(3 * S); /* until they are known as jobs */
    for (unsigned i = 0; i < light; i++) {
        uint64_t work = random_between(50 * US, 900 * US);
        add(LIGHT, work, work * 2u, now);
    }
    run(4 * S);
    forget_the_warming_up();
    run(8 * S);
    for (unsigned i = 0; i < jobs; i++) {
        held += actors[i].held_ns;
        CHECK(actors[i].held_ns > 0);
        CHECK((double)actors[i].longest_wait_ns <=
              (double)jobs * (double)policy.slice_ns / policy.batch_share);
    }
    CHECK((double)held >= 0.9 * policy.batch_share * (double)(4 * S));
}

/* One pool, whose requests take a millisecond more or less and want all there is: chance decides whose are
 * light, and the others wait for a few of them, not for their end. */
static void
test_a_pool_serves_alike(uint64_t seed)
{
    begin();
    random_state = seed;
    unsigned threads = (unsigned)random_between(6, 12), jobs = (unsigned)random_between(0, 1);
    uint64_t round_ns = 0;

    for (unsigned i = 0; i < threads; i++) {
        uint64_t work = random_between(500 * US, 1500 * US);
        round_ns += work;
        add(LIGHT, work, work * 2u, 1);
    }
    for (unsigned i = 0; i < jobs; i++) {
        add(JOB, 0, 0, 1);
    }
    run(1 * S);
    forget_the_warming_up();
    run(4 * S);
    for (unsigned i = 0; i < threads; i++) {
        CHECK(actors[i].longest_wait_ns <= 2u * round_ns + 2u * PLUS_OVERTAKEN_NS);
    }
}

/* A job that begins in a thread which has slept until then. */
static void
test_a_job_that_begins(uint64_t seed)
{
    begin();
    random_state = seed;
    uint64_t work = random_between(20 * US, 900 * US);
    struct actor *light = add(LIGHT, work, random_between(3 * MS, 20 * MS), 1);

    add(LIGHT, 50 * US, 10 * MS, 1);
    run(2 * S);
    forget_the_warming_up();
    add(JOB, 0, 0, now + random_between(0, 20 * MS));
    run(now + 1 * S);
    CHECK(light->longest_wait_ns <= INTERVAL_NS + 2 * MS);
}

int
main(int argc, char **argv)
{
    answers = malloc(MAX_ANSWERS * sizeof(*answers));
    CHECK(answers != NULL);
    if (argc > 1 && strcmp(argv[1], "table") == 0) {
        print_table();
    }
    else {
        test_requests_are_served_as_if_alone();
        for (uint64_t seed = 1; seed <= 1000; seed++) {
            test_a_random_mix(seed * 0x9e3779b97f4a7c15u);
            test_nobody_starves(seed * 0x9e3779b97f4a7c15u);
            test_a_pool_serves_alike(seed * 0x9e3779b97f4a7c15u);
            test_a_job_that_begins(seed * 0x9e3779b97f4a7c15u);
        }
    }
    free(answers);
    return 0;
}
