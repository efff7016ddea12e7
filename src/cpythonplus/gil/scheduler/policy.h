/* Which thread goes before which: the decisions, without the waiting.
 *
 * Pure functions over records and numbers: no locks, no clock, no sleeping, no Python, so that each
 * rule has a unit test and whole mixes of threads can be simulated.  sched.c calls them under the
 * GIL's mutex.
 *
 * A thread that has used less of the GIL lately goes before one that has used more, and interrupts it at once;
 * threads of equal usage take turns.  `Used lately` is an account: each nanosecond of holding the GIL adds to it,
 * each nanosecond away from the GIL subtracts; time in the queue changes nothing.  So a thread that wants the GIL
 * for less than half of its time comes back with an account near 0, and a thread that never rests reaches the cap
 * and stays there, however little it gets.  (A decay-usage scheduler as in 4.3BSD, with the sleep of ULE's
 * interactivity score.)  The account lies between 0 and the cap: no sleeper can save anything up.
 *
 * The account maps to a level, and each level has a feedback queue:
 *
 *     level  0   up to 1 ms, now and lately: an echo
 *            1   up to twice the thread's typical usage before it rests: a handler
 *            2   up to 5 ms: a thread that begins
 *            3   up to 10 ms, 4 to 20, 5 to 40, 6 to 80, 7 to 160, 8 more: a CPU-bound thread
 *
 * So a CPU-bound thread goes behind all handlers after its first 5 ms, however long their requests compute.
 *
 * If one pool serves requests of about a millisecond, chance puts its threads on both sides of the first limit.
 * If those below it want the whole GIL, those above would starve.  So levels 0 and 1 share the GIL by halves, with
 * a lag of 5 ms.
 *
 * A handler that is kept waiting finds more work afterwards.  It gets credit for the wait, by its demand; otherwise
 * it would count as CPU-bound until it has caught up, beside many CPU-bound threads for ever.
 * demand: else it would pass for a job until it has caught up, beside many jobs for ever.
 *
 * Rejected, each measured or tried:
 *   - two classes with a limit between them: a request that computes for longer than the limit takes turns with
 *     the CPU-bound threads, and a new CPU-bound thread holds others up for as long as the limit;
 *   - equal shares (lag against the average, as EEVDF): beside eight CPU-bound threads a request would get a
 *     ninth of the GIL, though all requests together want a third;
 *   - asking at once for every waiter (no levels): two light threads preempt each other at every wake-up, and a
 *     Lock ping-pong on one core falls to a tenth;
 *   - crediting absence after a forced release in full: a thread comes back late if the kernel gave its core to
 *     another one, and would look like a thread that rests;
 *   - timers of a fraction of a millisecond for every waiter: a timer nearer than the next tick makes the kernel
 *     reprogram the timer hardware, which causes a VM exit on a virtual machine.
 */
#pragma once

#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

struct plus_policy {
    uint64_t slice_ns;  /* one turn among threads of equal level */
    uint64_t spin_ns;   /* how long a waiter polls at most */
    double batch_share; /* 0 <= share < 1; of the threads that lighter ones overtake, together */
    bool eager;         /* every waiter asks at once: for the proof that the interpreter answers */
};

/* The levels as two classes, for the statistics. */
enum plus_class {
    PLUS_INTERACTIVE, /* levels 0 to 2: the thread rests soon, or after its typical usage */
    PLUS_BATCH,       /* the thread holds the GIL longer than it rests */
};

#define PLUS_LEVELS 9u

/* A holder below this is left alone by waiters of its level, and no short timer asks it. */
#define PLUS_LIGHT_NS (UINT64_C(1) * 1000 * 1000)

/* A thread without a typical usage goes before known CPU-bound threads up to here. */
#define PLUS_BEGINNING_NS (UINT64_C(5) * 1000 * 1000)

/* The last level begins at PLUS_HEAVY_NS; the account is capped at twice as much. */
#define PLUS_HEAVY_NS (UINT64_C(160) * 1000 * 1000)
#define PLUS_ACCOUNT_CAP_NS (2u * PLUS_HEAVY_NS)

/* How far back a thread's demand is measured, and the rest that a new thread is credited with. */
#define PLUS_MEMORY_NS (UINT64_C(4000) * 1000 * 1000)
#define PLUS_UNKNOWN_NS (UINT64_C(100) * 1000 * 1000)

/* The most credit that a thread can have for waiting. */
#define PLUS_CREDIT_NS (UINT64_C(50) * 1000 * 1000)

/* Lighter threads keep heavier ones waiting for at most this long; then one of the heavier runs, protected from
 * requests, for as long as batch_share needs. */
#define PLUS_STARVATION_NS (UINT64_C(20) * 1000 * 1000)

/* Threads of level 0 keep handlers (level 1) waiting for at most this long; then one handler runs for as long, so
 * handlers get half of the GIL if they need it.  In a pool it is chance which thread is at which level. */
#define PLUS_OVERTAKEN_NS (UINT64_C(5) * 1000 * 1000)

/* Absence after a release that was asked for counts only as 1/4. */
#define PLUS_ASKED_AWAY 4u

/* Waiters of an atomic section check this often; correctness does not depend on it. */
#define PLUS_SAFETY_NS (UINT64_C(100) * 1000 * 1000)

/* A waiter uses the short timer for this many waits after one that lasted longer than PLUS_LIGHT_NS. */
#define PLUS_IMPATIENCE 16u

/* The level of a thread that has held the GIL for held_ns; held_ns is 0 if it does not hold it. */
unsigned
plus_policy_level(const struct plus_usage *usage, uint64_t held_ns);

enum plus_class
plus_policy_class(unsigned level);

/* The longest turn of a thread of `level`: slice_ns; at levels 0 and 1, interval_ns (the switch interval) if that is
 * less. */
uint64_t
plus_policy_slice_ns(unsigned level, uint64_t slice_ns, uint64_t interval_ns);

/* Updates the usage after a hold of hold_ns. */
void
plus_policy_held(struct plus_usage *usage, uint64_t hold_ns, bool asked);

/* Updates the usage after away_ns outside the GIL and outside its queue. */
void
plus_policy_away(struct plus_usage *usage, uint64_t away_ns);

/* Updates the usage after a wait of waited_ns in the queue. */
void
plus_policy_waited(struct plus_usage *usage, uint64_t waited_ns);

/* Returns the length of one protected run: after PLUS_STARVATION_NS of waiting it gives the overtaken threads
 * batch_share of the time. */
uint64_t
plus_policy_quantum_ns(const struct plus_policy *policy);

/* Returns how much of the debt to overtaken threads a hold of hold_ns by one of them pays back. */
uint64_t
plus_policy_repaid_ns(const struct plus_policy *policy, uint64_t hold_ns);

/* The next step of a waiter. */
struct plus_decision {
    bool ask;              /* make the interpreter request the GIL from its holder now */
    bool asked;            /* the holder was asked before, by any waiter */
    bool wants;            /* would ask, were the holder not inside an atomic section */
    bool holder_is_brief;  /* the holder is likely to be done within the polling time */
    bool holder_is_chatty; /* with `ask`: that is so likely that the waiter polls before it asks */
    uint64_t deadline_ns;  /* unless `ask`: decide again then */
};

/* The situation of a waiter. */
struct plus_situation {
    uint64_t now_ns;
    uint64_t interval_ns;             /* the interpreter's switch interval */
    uint64_t slice_ns;                /* one turn */
    const struct plus_thread *self;   /* with its level set */
    const struct plus_thread *holder; /* NULL: nobody */
    unsigned holder_level;            /* with its present hold, and what was lent to it */
    bool self_is_first;               /* of all waiters */
    bool asked;                       /* the holder has been asked already */
    bool holder_atomic;
    uint64_t protected_until_ns; /* the holder was overtaken for too long and may run until then */
};

struct plus_decision
plus_policy_decide(const struct plus_policy *policy, const struct plus_situation *situation);
