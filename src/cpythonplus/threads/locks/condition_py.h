/* Condition, for the types that are built on it.  Called with the GIL held. */
#pragma once

#include "lock_py.h"

typedef struct {
    PyObject_HEAD struct plus_waitq queue; /* threads inside wait() */
    PyObject *lock;
    PyObject
        *waiters; /* deque of the locks that threading.Condition.wait() itself sleeps on; or NULL */
    PyObject *dict, *weakrefs;
    bool native; /* `lock` is exactly a Lock or an RLock of ours */
    bool recursive;
} plus_condition_object;

/* Makes a Condition over a new Lock, or over `lock`, which must be a Lock or RLock of ours. */
plus_condition_object *
plus_condition_new(struct plus_threads_state *state, PyObject *lock);

/* Gives `op` a condition of its own, in *field, unless it has one: then threads may wait in it.  Returns 0, or -1 with
 * an exception. */
int
plus_condition_provide(PyObject *op, plus_condition_object **field,
                       struct plus_threads_state *state);

/* The plain Lock of a condition that plus_condition_new() made over one. */
static inline struct plus_lock *
plus_condition_lock(plus_condition_object *self)
{
    return &((plus_lock_object *)self->lock)->lock;
}

/* Takes the condition's plain lock; signal handlers run meanwhile.  Returns 0, or -1 with the exception of one. */
static inline int
plus_condition_enter(plus_condition_object *self)
{
    return plus_lock_enter(plus_condition_lock(self));
}

static inline void
plus_condition_leave(plus_condition_object *self)
{
    plus_lock_release(plus_condition_lock(self));
}

/* Waits once.  The condition's plain lock is held before, and again afterwards, also on failure, but not after GRANTED.
 * An invalid deadline counts as failure.  Queues the waiter by plus_waitq_enqueue(), and returns as plus_wait(): after
 * WOKEN check again, after SIGNAL there is an exception. */
enum plus_wait_result
plus_condition_sleep(plus_condition_object *self, struct plus_waiter *waiter, uint64_t deadline_ns);

/* Ends the waits of up to `count` threads in threading.Condition.wait() itself, called with a native condition.
 * Returns `count` less the waits that ended. */
uint32_t
plus_condition_notify_standard(plus_condition_object *self, uint32_t count);

/* Ends the waits of up to `count` threads.  The lock is held.  (So the length may be read without the guard: a thread
 * that is about to wait has the lock until it is queued.) */
static inline void
plus_condition_notify(plus_condition_object *self, uint32_t count)
{
    if (__builtin_expect(self->waiters != NULL, 0)) {
        count = plus_condition_notify_standard(self, count);
    }
    if (plus_waitq_length(&self->queue) > 0) {
        plus_waitq_wake(&self->queue, count);
    }
}

/* Makes a condition new in the child of a fork: its lock free, without waiters.  Returns 0, or -1 with an exception. */
int
plus_condition_reinit(plus_condition_object *self);

/* Called in the child of a fork by the thread that goes on waiting there: it still counts as waiting. */
void
plus_barrier_atfork_child(void);
