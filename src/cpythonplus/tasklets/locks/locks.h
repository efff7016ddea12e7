/* The lock under Lock and RLock: tasklets of one thread or of several, and threads without tasklets, wait for it
 * in plus_park().
 *
 * All with the GIL held, which is what guards every field; it is given up only where a whole thread has nothing to
 * run.
 *
 * Who waits is served in order.  A lock is *handed over* to the first waiter, never being free, if that is of the
 * releasing thread, which could otherwise take it again before the waiter runs, or if it has waited for long.  Else
 * the lock becomes free and the waiter is woken: to hand it to another thread, which first has to get the GIL, would
 * make everybody wait for that.  A waiter that comes too late waits on at the head.
 *
 * fork: in the child a lock is free whose owner was of another thread, and so is one on its way to such a one.
 */
#ifndef PLUS_TASKLETS_LOCKS_H
#define PLUS_TASKLETS_LOCKS_H

#include "../scheduling/parking.h"

struct plus_task_lock {
    struct plus_channel queue; /* who waits; its head is the object's */
    uint64_t thread; /* number of the owner's thread; 0 while on its way to another thread */
    struct plus_tasklet *owner; /* of an RLock; strong */
    struct plus_tasklet
        *heir;           /* was given it and has not run since; borrowed, only to be compared */
    unsigned long count; /* of an RLock's acquisitions */
    uint32_t heir_generation; /* of the process, when the lock went to the heir */
    uint32_t
        woken_generation; /* generation + 1 when one was woken that has not run since; 0: nobody */
    uint32_t waits, timeouts, hand_overs, in_vain; /* counted since it was made */
    bool locked;
    bool hand_over; /* the head has been woken in vain for long */
};

/* Takes it if it is free or left behind by a fork. */
bool
plus_task_lock_try_slowly(struct plus_task_lock *lock);

static inline bool
plus_task_lock_try(struct plus_task_lock *lock)
{
    if (__builtin_expect(!lock->locked, 1)) {
        lock->locked = true;
        lock->thread = plus_identity();
        return true;
    }
    return plus_task_lock_try_slowly(lock);
}

/* Whether somebody has it who can give it back. */
bool
plus_task_lock_is_locked(const struct plus_task_lock *lock);

/* For a lock that could not be taken.  Waits until it is the running tasklet's (1), the dead line has passed (0; dead
 * line 0: at once), or an exception arrives (-1), which may also be that nothing may block here.  Whatever the
 * exception comes across, the lock does not stay with who got it. */
int
plus_task_lock_wait(struct plus_task_lock *lock, uint64_t deadline_ns);

/* Waits on when exceptions arrive, so that the lock is held when they are raised.  0; -1 with the exception; -2: the
 * third one came or nothing may block here, and the lock is not held. */
int
plus_task_lock_insist(struct plus_task_lock *lock);

/* Somebody waits: gives it to the first, or wakes that. */
void
plus_task_lock_pass_on(struct plus_task_lock *lock);

/* The lock is held. */
static inline void
plus_task_lock_release(struct plus_task_lock *lock)
{
    if (__builtin_expect(lock->queue.head == NULL, 1)) {
        lock->locked = false;
    }
    else {
        plus_task_lock_pass_on(lock);
    }
}

/* Free, and who waits looks again. */
void
plus_task_lock_reinit(struct plus_task_lock *lock);

/* In the child of a fork: lets this thread's tasklets look again at the locks that nobody can give back. */
void
plus_task_locks_after_fork(struct plus_scheduler *sched);

extern const char plus_acquiring[]; /* what is said of who waits for a lock */

#endif
