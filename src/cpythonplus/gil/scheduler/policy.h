/* Who goes before whom: the decisions, without the waiting.
 *
 * Pure functions over records and numbers: no locks, no clock, no sleeping, no Python, so that each
 * rule has a unit test and whole mixes of threads can be simulated.  sched.c calls them under the
 * GIL's mutex.
 *
 * Whoever has used less of the GIL lately goes before whoever has used more, and interrupts it at
 * once; equal ones take turns.  `Used lately` is an account: it grows by each nanosecond of holding
 * the GIL and shrinks by each of staying away from it; time in the queue changes nothing.  So a
 * thread that wants the GIL for less than half of its time comes back with an account near 0, and
 * one that never rests goes to the cap and stays there, however little it gets.  (A decay-usage
 * scheduler as in 4.3BSD, with the sleep of ULE's interactivity score.)  The cap bounds the lag on
 * one side, 0 on the other: no sleeper can save up anything.
 *
 * The account is read in levels, which are feedback queues:
 *
 *     level  0   up to 1 ms, and never more of late: an echo
 *            1   up to what the thread usually comes to before it rests, twice: a handler
 *            2   up to 5 ms: a thread that begins
 *            3   up to 10 ms, 4 to 20, 5 to 40, 6 to 80, 7 to 160, 8 more: a job
 *
 * So a job that begins goes from 5 ms on behind all handlers, however long their requests compute.
 *
 * Where one pool serves requests of a millisecond, its threads are on both sides of the first limit, by
 * chance.  If they want all there is, handlers would starve behind their like: so those two levels
 * share by halves, with a lag of 5 ms.
 *
 * A handler that is kept waiting finds more to do afterwards.  It gets credit for its wait, by its
 * demand: else it would pass for a job until it has caught up, beside many jobs for ever.
 *
 * Rejected, each measured or tried:
 *   - two classes with a limit between them: whatever the limit, a request that computes for longer
 *     takes turns with the jobs, and a job that begins holds others up for as long as the limit;
 *   - equal shares (lag against the average, as EEVDF): beside eight jobs a request would get a
 *     ninth of the GIL, though all requests together want a third;
 *   - asking at once for everybody (no levels): two light threads preempt each other at every
 *     wake-up, and a Lock ping-pong on one core falls to a tenth;
 *   - crediting absence after a forced release in full: a forced thread comes back late when the
 *     kernel gave its core to somebody else, and would pass for one that rests;
 *   - timers of a fraction of a millisecond for everybody: a timer nearer than the next tick makes
 *     the kernel reprogram the timer hardware, which on a virtual machine leaves the guest.
 */
#ifndef PLUS_GIL_POLICY_H
#define PLUS_GIL_POLICY_H

#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

struct plus_policy {
    uint64_t slice_ns;  /* one turn among equal ones */
    uint64_t spin_ns;   /* how long a waiter polls at most */
    double batch_share; /* 0 <= share < 1; of those whom lighter threads overtake, together */
    bool eager;         /* every waiter asks at once: for the proof that the interpreter answers */
};

/* The levels in two words, for the statistics. */
enum plus_class {
    PLUS_INTERACTIVE, /* levels 0 to 2: rests soon, or as it usually does */
    PLUS_BATCH,       /* uses more than it rests */
};

#define PLUS_LEVELS 9u

/* Up to here a holder is left alone by its equals and asked by nobody's short timer. */
#define PLUS_LIGHT_NS (UINT64_C(1) * 1000 * 1000)

/* Up to here a thread that is not known yet goes before known jobs. */
#define PLUS_BEGINNING_NS (UINT64_C(5) * 1000 * 1000)

/* The last level begins here, and the account ends at twice as much. */
#define PLUS_HEAVY_NS (UINT64_C(160) * 1000 * 1000)
#define PLUS_ACCOUNT_CAP_NS (2u * PLUS_HEAVY_NS)

/* How far back a thread's demand is remembered, and the rest that a new thread begins with. */
#define PLUS_MEMORY_NS (UINT64_C(4000) * 1000 * 1000)
#define PLUS_UNKNOWN_NS (UINT64_C(100) * 1000 * 1000)

/* What a thread can use beyond its account for having been kept waiting. */
#define PLUS_CREDIT_NS (UINT64_C(50) * 1000 * 1000)

/* Lighter threads keep heavier ones waiting for so long at most before one of them runs, unasked, for
 * as long as batch_share needs. */
#define PLUS_STARVATION_NS (UINT64_C(20) * 1000 * 1000)

/* The same for handlers that the lightest keep waiting, and how long one of them runs then: half of the
 * GIL, if they want it.  In a pool chance decides who is which. */
#define PLUS_OVERTAKEN_NS (UINT64_C(5) * 1000 * 1000)

/* Absence after a release that was asked for counts by this part. */
#define PLUS_ASKED_AWAY 4u

/* Waiters of an atomic section look around this often; nobody depends on it. */
#define PLUS_SAFETY_NS (UINT64_C(100) * 1000 * 1000)

/* So many waits in a row use the short timer after one that lasted longer than PLUS_LIGHT_NS. */
#define PLUS_IMPATIENCE 16u

/* The level of a thread that holds the GIL since held_ns, 0 if it does not. */
unsigned
plus_policy_level(const struct plus_usage *usage, uint64_t held_ns);

enum plus_class
plus_policy_class(unsigned level);

/* A turn among equal ones of a level: handlers' are as long as the interpreter's own. */
uint64_t
plus_policy_slice_ns(unsigned level, uint64_t slice_ns, uint64_t interval_ns);

/* After a hold of hold_ns. */
void
plus_policy_held(struct plus_usage *usage, uint64_t hold_ns, bool asked);

/* After away_ns outside the GIL and outside its queue. */
void
plus_policy_away(struct plus_usage *usage, uint64_t away_ns);

/* After waiting in its queue for waited_ns. */
void
plus_policy_waited(struct plus_usage *usage, uint64_t waited_ns);

/* How long one protected run lasts, so that PLUS_STARVATION_NS of waiting and one such run come to
 * batch_share. */
uint64_t
plus_policy_quantum_ns(const struct plus_policy *policy);

/* What one nanosecond of holding by somebody who is overtaken pays back of the time that such ones
 * were kept waiting. */
uint64_t
plus_policy_repaid_ns(const struct plus_policy *policy, uint64_t hold_ns);

/* What a waiter does next. */
struct plus_decision {
    bool ask;              /* make the interpreter request the GIL from its holder now */
    bool asked;            /* it was asked before, by whomever */
    bool wants;            /* would ask, were the holder not inside an atomic section */
    bool holder_is_brief;  /* the holder is likely to be done within the polling time */
    bool holder_is_chatty; /* with `ask`: likely enough to be polled out first */
    uint64_t deadline_ns;  /* otherwise: decide again then */
};

/* What a waiter can see. */
struct plus_situation {
    uint64_t now_ns;
    uint64_t interval_ns;             /* the interpreter's switch interval */
    uint64_t slice_ns;                /* one turn */
    const struct plus_thread *self;   /* with its level set */
    const struct plus_thread *holder; /* NULL: nobody */
    unsigned holder_level;            /* with what it holds now, and what was lent to it */
    bool self_is_first;               /* of all waiters */
    bool asked;                       /* the holder has been asked already */
    bool holder_atomic;
    uint64_t protected_until_ns; /* one that was overtaken for too long may run until then */
};

struct plus_decision
plus_policy_decide(const struct plus_policy *policy, const struct plus_situation *situation);

#endif
