/* The lock under Lock and RLock.  Tasklets of one thread or of several, and threads without tasklets, wait for it in
 * plus_park().
 *
 * Called with the GIL held, which guards every field; it is given up only if a whole thread has nothing to run.
 *
 * Waiters are served in order.  A lock is *handed over* to the first waiter, without becoming free, in two cases: the
 * waiter belongs to the releasing thread, which could otherwise take the lock again before the waiter runs; or it has
 * waited for long.  Otherwise the lock becomes free and the waiter is woken: after a hand-over to another thread, which
 * first has to get the GIL, everybody would wait for that.  A waiter that comes too late waits on at the head.
 *
 * fork: in the child a lock is free if its owner, or its heir, was in another thread.
 */
#pragma once

#include "../scheduling/parking.h"

struct plus_task_lock {
    struct plus_channel queue; /* the waiters; its PyObject head is that of the lock */
    uint64_t thread; /* identity of the owner's thread; 0 while on its way to another thread */
    struct plus_tasklet *owner; /* of an RLock; strong */
    const void *holder; /* the tasklet that took it, NULL in a thread without; only compared */
    struct plus_tasklet
        *heir;           /* was handed the lock and has not run since; borrowed, only compared */
    unsigned long count; /* acquisitions of an RLock */
    uint32_t heir_generation;  /* of the process in which the lock went to the heir */
    uint32_t woken_generation; /* generation + 1 if a woken waiter has not run since; 0: none */
    uint32_t waits, timeouts, hand_overs, in_vain; /* counted since it was made */
    bool locked;
    bool hand_over; /* the head has been woken in vain for long: hand over to it */
    bool imports;   /* of importlib: see is_imported_elsewhere() */
};

static inline void
plus_task_lock_hold(struct plus_task_lock *lock)
{
    lock->locked = true;
    lock->thread = plus_identity();
    lock->holder = plus_scheduler_own != NULL ? plus_scheduler_own->running : NULL;
}

/* Takes the lock if it is free or left behind by a fork. */
bool
plus_task_lock_try_slowly(struct plus_task_lock *lock);

static inline bool
plus_task_lock_try(struct plus_task_lock *lock)
{
    if (__builtin_expect(!lock->locked, 1)) {
        plus_task_lock_hold(lock);
        return true;
    }
    return plus_task_lock_try_slowly(lock);
}

/* Whether the lock has an owner that can release it. */
bool
plus_task_lock_is_locked(const struct plus_task_lock *lock);

/* Waits for a lock that could not be taken.  1: the running tasklet has it; 0: the deadline has passed (deadline 0: at
 * once); -1 with an exception, also if blocking is not allowed here.  Whenever the exception comes, the lock does not
 * stay with the tasklet. */
int
plus_task_lock_wait(struct plus_task_lock *lock, uint64_t deadline_ns);

/* Keeps waiting when exceptions arrive, so that the lock is held when they are raised.  0; -1 with the exception; -2:
 * the third one came or blocking is not allowed here, and the lock is not held. */
int
plus_task_lock_insist(struct plus_task_lock *lock);

/* Hands the lock to the first waiter, or wakes it; there must be one. */
void
plus_task_lock_pass_on(struct plus_task_lock *lock);

/* Releases the lock, which must be held. */
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

/* Makes the lock free; its waiters try again. */
void
plus_task_lock_reinit(struct plus_task_lock *lock);

/* Called in the child of a fork: this thread's tasklets try the locks again that nobody can release. */
void
plus_task_locks_after_fork(struct plus_scheduler *sched);

extern const char plus_acquiring[]; /* a dump's words for a tasklet that waits for a lock */

/* Lock and RLock (locks_py.c). */
extern PyTypeObject plus_task_lock_type, plus_task_rlock_type;

/* Makes a Lock or RLock for importlib. */
PyObject *
plus_task_lock_for_imports(PyObject *module, PyObject *type);

/* Returns (tasklet, lock, address of the tasklet that holds it or 0, ns) of each tasklet that waits for a lock without a
 * time-out. */
PyObject *
plus_task_lock_waits(PyObject *module, PyObject *ignored);
