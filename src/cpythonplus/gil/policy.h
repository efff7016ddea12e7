/* Who waits for whom: the decisions, without the waiting.
 *
 * Pure functions over records and numbers: no locks, no clock, no sleeping, no Python, so that each
 * rule has a unit test.  sched.c calls them under the GIL's mutex.
 *
 * Rejected, each measured or tried:
 *   - asking at once for everybody (no classes): two interactive threads preempt each other at every
 *     wake-up, and a Lock ping-pong on one core falls to a tenth;
 *   - telling a forced release from a voluntary one by the time that the thread stays away: a forced
 *     thread comes back late when the kernel gave its core to somebody else, and one wrong answer
 *     makes a CPU-bound thread pass for an interactive one.  Absence only decays the account slowly;
 *   - timers of a fraction of a millisecond for everybody: a timer nearer than the next tick makes
 *     the kernel reprogram the timer hardware, which on a virtual machine leaves the guest.
 */
#ifndef PLUS_GIL_POLICY_H
#define PLUS_GIL_POLICY_H

#include "queue.h"
#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

struct plus_policy {
    uint64_t grace_ns;
    uint64_t batch_slice_ns;
    uint64_t starvation_ns;
    uint64_t spin_ns;
    double batch_share; /* 0 <= share < 1 */
};

/* Non-head waiters and waiters of an atomic section look around this often; nobody depends on it. */
#define PLUS_SAFETY_NS (UINT64_C(100) * 1000 * 1000)

/* The account is capped at this many graces: enough to stay batch over one wrong halving. */
#define PLUS_ACCOUNT_CAP 8

/* While away from the GIL a thread's account shrinks by this part of the absence. */
#define PLUS_AWAY_DECAY 4

/* So many waits in a row use the short timer after one that lasted beyond the grace. */
#define PLUS_IMPATIENCE 16

enum plus_class
plus_policy_class(const struct plus_policy *policy, uint64_t account_ns);

/* The account after a hold of hold_ns that ended because the thread was asked, or by itself. */
uint64_t
plus_policy_account(const struct plus_policy *policy, uint64_t account_ns, uint64_t hold_ns,
                    bool asked);

/* The account after away_ns outside the GIL and outside its queue. */
uint64_t
plus_policy_decay(uint64_t account_ns, uint64_t away_ns);

/* How long one protected run of a starved batch thread lasts, so that starvation_ns of waiting and
 * one such run come to batch_share. */
uint64_t
plus_policy_quantum_ns(const struct plus_policy *policy);

/* What one nanosecond of batch holding pays back of the time that batch threads were kept waiting. */
uint64_t
plus_policy_repaid_ns(const struct plus_policy *policy, uint64_t hold_ns);

/* What a waiter does next. */
struct plus_decision {
    bool ask;             /* make the interpreter request the GIL from its holder now */
    bool asked;           /* it was asked before, by whomever */
    bool wants;           /* would ask, were the holder not inside an atomic section */
    bool holder_is_brief; /* the holder is likely to be done within the polling time */
    uint64_t deadline_ns; /* otherwise: decide again then */
};

/* What the waiter can see. */
struct plus_situation {
    uint64_t now_ns;
    uint64_t interval_ns;             /* the interpreter's switch interval */
    uint64_t slice_ns;                /* one batch thread's turn */
    uint64_t turn_used_ns;            /* of it by earlier holds of the thread whose turn it is */
    const struct plus_thread *self;   /* with queued_as set */
    const struct plus_thread *holder; /* NULL: nobody */
    bool asked;                       /* the holder has been asked already */
    bool holder_atomic;
    bool holder_has_turn;        /* the holder is the batch thread whose turn it is */
    bool self_is_first;          /* of its queue */
    bool self_is_next;           /* first, but for one that was interrupted in its turn */
    uint32_t ahead;              /* waiters in its queue that came before it, at most */
    uint64_t protected_until_ns; /* a starved batch thread may run until then */
    bool missed;                 /* self was granted it before, and found it taken again */
    uint64_t brief_hold_ns;      /* how long interactive threads hold it lately */
};

struct plus_decision
plus_policy_decide(const struct plus_policy *policy, const struct plus_situation *situation);

#endif
