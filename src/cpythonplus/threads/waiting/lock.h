/* A mutual exclusion lock that any thread may release, with a first-in-first-out queue of waiters.
 *
 * The word:  LOCKED  somebody has it
 *            SLOW    somebody waits, or was woken and is not back: a release goes through the guard
 *
 * A release wakes the first waiter and leaves the lock free: whoever comes first takes it, most often
 * a thread that runs already.  (Handing it to the sleeper instead would make every other thread stop
 * at its next acquisition until the sleeper has a processor and the GIL: a convoy.)  While one woken
 * waiter is on its way no other is woken.  A waiter that has waited for 1 ms gets the lock handed over,
 * one per millisecond; the same idea is in Go's sync.Mutex and in CPython's PyMutex.
 *
 * Taking the lock itself is always done with the GIL held (where there is one), also by a woken
 * waiter: a thread that had the lock but not the GIL would stop everybody else for nothing.
 *
 * fork: the word is kept, the waiters are forgotten (waitq.h).  So a lock that another thread had stays
 * taken in the child, as the interpreter's own does: whoever asks there whether something has been done
 * (`if once.acquire(False)`) gets the same answer, and plus_lock_reinit is for those who know better.
 */
#ifndef PLUS_THREADS_LOCK_H
#define PLUS_THREADS_LOCK_H

#include "waitq.h"

#define PLUS_LOCK_LOCKED 1u
#define PLUS_LOCK_SLOW 2u

struct plus_lock {
    _Atomic uint32_t word;
    _Atomic uint64_t owner; /* identity, 0 while free; written by who has it or hands it over */
    struct plus_waitq queue;
};

void
plus_lock_init(struct plus_lock *lock);

/* As new, in the child of a fork: free, and nobody waits. */
void
plus_lock_reinit(struct plus_lock *lock);

/* Private to the functions below. */
bool
plus_lock_try_slowly(struct plus_lock *lock, uint64_t identity);
int
plus_lock_release_slowly(struct plus_lock *lock);

/* The word from one value to another, if it has the one: private to this room.
 *
 * In the extension module for an interpreter with a GIL, whose build defines PLUS_LOCK_UNDER_GIL for all files,
 * a look and a store do, without a locked instruction, which is a third of the time of a `with lock:`.
 * For only holders of the GIL change a word without SLOW: they acquire, release and begin to wait.  A
 * thread without it changes the word only under the guard and while SLOW is set. */
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

/* 0, or -EPERM if nobody has it.  Never sleeps; wakes one waiter at most. */
static inline int
plus_lock_release(struct plus_lock *lock)
{
    /* Before, not after: a free lock never shows the owner of long ago. */
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    if (__builtin_expect(plus_lock_change(lock, PLUS_LOCK_LOCKED, 0, memory_order_release), 1)) {
        return 0;
    }
    return plus_lock_release_slowly(lock);
}

/* Whether somebody has it. */
bool
plus_lock_is_locked(const struct plus_lock *lock);

/* Queues the waiter of an acquisition whose try failed.  False if the lock is free: then go on as after WOKEN.
 * With the GIL held. */
bool
plus_lock_enqueue(struct plus_lock *lock, struct plus_waiter *waiter);

/* One wait.  After WOKEN: take the GIL and call plus_lock_after_wake; after GRANTED the caller has the
 * lock; after TIMED_OUT it is out; after SIGNAL comes plus_waiter_interrupt.  Without the GIL. */
enum plus_wait_result
plus_lock_wait_nogil(struct plus_lock *lock, struct plus_waiter *waiter, uint64_t deadline_ns);

/* A woken waiter's try.  False: wait again. */
bool
plus_lock_after_wake(struct plus_lock *lock, struct plus_waiter *waiter);

#endif
