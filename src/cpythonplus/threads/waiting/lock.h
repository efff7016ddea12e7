/* A mutual exclusion lock that any thread may release, with a first-in-first-out queue of waiters.
 *
 * The word:  LOCKED  the lock has an owner
 *            SLOW    a thread waits, or was woken and is not back: a release takes the guard
 *
 * A release wakes the first waiter and leaves the lock free: the first thread that tries takes it, mostly one that runs
 * already.  (Handing the lock to the sleeper instead would stop every other thread at its next acquisition until the
 * sleeper has a processor and the GIL: a convoy.)  While one woken waiter is on its way, no other is woken.  A waiter
 * that has waited for 1 ms gets the lock handed over, one per millisecond; Go's sync.Mutex and CPython's PyMutex do the
 * same.
 *
 * The lock itself is always taken with the GIL held (if there is one), also by a woken waiter: a thread that had the
 * lock but not the GIL would stop all others for nothing.
 *
 * fork: the word is kept, the waiters are forgotten (waitq.h).  So a lock that another thread had stays taken in the
 * child, like the interpreter's own: code that asks there whether something has been done (`if once.acquire(False)`)
 * gets the same answer.  plus_lock_reinit() is for code that knows that the owner is gone.
 */
#pragma once

#include "waitq.h"

#define PLUS_LOCK_LOCKED 1u
#define PLUS_LOCK_SLOW 2u

struct plus_lock {
    _Atomic uint32_t word;
    uint32_t taken; /* tick in which it was last taken while threads waited; GIL, or the guard */
    _Atomic uint64_t owner; /* identity, 0 while free; written by the owner, or to hand over */
    struct plus_waitq queue;
};

/* The threads that a hold keeps waiting for too long: no waiters if there are none. */
struct plus_lock_stall {
    uint64_t held_ns;   /* since the lock was taken; far too much if nobody waited then */
    uint64_t hold_ns;   /* the same, but at most since the first of them began to wait */
    uint64_t waited_ns; /* by all of them together */
    uint32_t waiters;
};

/* Called by the thread that has just released a lock, with the GIL, if there are such waiters, or if one has looked at
 * the owner.  stall is NULL if another thread had the lock.  Set once; NULL: nobody. */
extern void (*plus_lock_stalled)(const struct plus_lock *lock, const struct plus_lock_stall *stall);

void
plus_lock_init(struct plus_lock *lock);

/* Makes the lock new in the child of a fork: free, without waiters. */
void
plus_lock_reinit(struct plus_lock *lock);

/* Private to the functions below. */
bool
plus_lock_try_slowly(struct plus_lock *lock, uint64_t identity);
int
plus_lock_release_slowly(struct plus_lock *lock);

/* Changes the word from `from` to `to`, if it is `from`: private to this room.
 *
 * PLUS_LOCK_UNDER_GIL is defined for all files of the extension module for an interpreter with a GIL.  With it a load
 * and a store replace the locked instruction, which takes a third of the time of a `with lock:`.  This is correct
 * because only holders of the GIL change a word without SLOW: they acquire, release and begin to wait.  A thread
 * without the GIL changes the word only under the guard and while SLOW is set. */
static inline bool
plus_lock_change(struct plus_lock *lock, uint32_t from, uint32_t to, memory_order order)
{
#ifdef PLUS_LOCK_UNDER_GIL
    if (atomic_load_explicit(&lock->word, memory_order_relaxed) != from) {
        return false;
    }
    (void)order; /* the GIL orders */
    atomic_store_explicit(&lock->word, to, memory_order_relaxed);
    return true;
#else
    return atomic_compare_exchange_strong_explicit(&lock->word, &from, to, order,
                                                   memory_order_relaxed);
#endif
}

/* Takes the lock if it is free.  Never sleeps. */
static inline bool
plus_lock_try(struct plus_lock *lock, uint64_t identity)
{
    if (__builtin_expect(plus_lock_change(lock, 0, PLUS_LOCK_LOCKED, memory_order_acquire), 1)) {
        atomic_store_explicit(&lock->owner, identity, memory_order_relaxed);
        return true;
    }
    return plus_lock_try_slowly(lock, identity);
}

/* Frees the lock if no release has to take the guard: private to plus_lock_release().  The owner is cleared before the
 * word, so that a free lock never shows a former owner.  Under the GIL it stays where the release goes on slowly. */
static inline bool
plus_lock_free(struct plus_lock *lock)
{
#ifdef PLUS_LOCK_UNDER_GIL
    if (atomic_load_explicit(&lock->word, memory_order_relaxed) != PLUS_LOCK_LOCKED) {
        return false;
    }
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
    return true;
#else
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    return plus_lock_change(lock, PLUS_LOCK_LOCKED, 0, memory_order_release);
#endif
}

/* Returns 0, or -EPERM if the lock is free.  Never sleeps; wakes one waiter at most. */
static inline int
plus_lock_release(struct plus_lock *lock)
{
    return __builtin_expect(plus_lock_free(lock), 1) ? 0 : plus_lock_release_slowly(lock);
}

/* Whether the lock is taken. */
bool
plus_lock_is_locked(const struct plus_lock *lock);

/* Queues the waiter of an acquisition whose try failed.  Returns false if the lock is free: then go on as after WOKEN.
 * Called with the GIL held. */
bool
plus_lock_enqueue(struct plus_lock *lock, struct plus_waiter *waiter);

/* Waits once, without the GIL.  After WOKEN: take the GIL and call plus_lock_after_wake(); after GRANTED the caller has
 * the lock; after TIMED_OUT it is not queued; after SIGNAL call plus_waiter_interrupt(). */
enum plus_wait_result
plus_lock_wait_nogil(struct plus_lock *lock, struct plus_waiter *waiter, uint64_t deadline_ns);

/* A waiter that is out of the queue looks at the owner: returns its identity, 0 if there is none, and has its release
 * tell.  Called with the GIL held. */
uint64_t
plus_lock_look(struct plus_lock *lock);

/* A woken waiter tries to take the lock.  Returns false if it has to wait again. */
bool
plus_lock_after_wake(struct plus_lock *lock, struct plus_waiter *waiter);
