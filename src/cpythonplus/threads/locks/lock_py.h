/* Lock and RLock, for the types that are built on them.  Called with the GIL held. */
#pragma once

#include "../maker.h"
#include "../state.h"
#include "../waiting/waiting.h"

#include "../../_base/process/identity.h"

typedef struct {
    PyObject_HEAD struct plus_lock lock;
    PyObject *weakrefs;
    struct plus_maker maker;
} plus_lock_object;

typedef struct {
    PyObject_HEAD struct plus_lock lock;
    PyObject *weakrefs;
    struct plus_maker maker; /* up to here the same as plus_lock_object */
    /* The owner's acquisitions, and its threading.get_ident(): only the owner writes them, any thread may read them. */
    _Atomic unsigned long count, owner_ident;
} plus_rlock_object;

/* A wait finds the object by its lock (waiting.c). */
_Static_assert(offsetof(plus_lock_object, lock) == sizeof(PyObject), "the lock follows the head");

/* Whether the calling thread has taken the lock.  Only the thread itself can store its own identity as the owner, so a
 * plain read is enough. */
static inline bool
plus_lock_is_own(const struct plus_lock *lock)
{
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == plus_identity();
}

static inline bool
plus_rlock_is_owned(const plus_rlock_object *self)
{
    return plus_lock_is_own(&self->lock);
}

static inline unsigned long
plus_rlock_count(const plus_rlock_object *self)
{
    return atomic_load_explicit(&self->count, memory_order_relaxed);
}

static inline void
plus_rlock_set_count(plus_rlock_object *self, unsigned long count)
{
    atomic_store_explicit(&self->count, count, memory_order_relaxed);
}

static inline unsigned long
plus_rlock_owner(const plus_rlock_object *self)
{
    return atomic_load_explicit(&self->owner_ident, memory_order_relaxed);
}

static inline void
plus_rlock_begin(plus_rlock_object *self, unsigned long count, unsigned long owner_ident)
{
    plus_rlock_set_count(self, count);
    atomic_store_explicit(&self->owner_ident, owner_ident, memory_order_relaxed);
}

/* Used only by the two functions below. */
int
plus_rlock_acquire_slowly(plus_rlock_object *self, uint64_t deadline_ns);
int
plus_rlock_release_slowly(plus_rlock_object *self);

/* Returns as plus_acquire; deadline 0: without waiting. */
static inline int
plus_rlock_acquire(plus_rlock_object *self, uint64_t deadline_ns)
{
    if (plus_lock_change(&self->lock, 0, PLUS_LOCK_LOCKED, memory_order_acquire)) {
        atomic_store_explicit(&self->lock.owner, plus_identity(), memory_order_relaxed);
        plus_rlock_begin(self, 1, plus_identity_ident());
        return 1;
    }
    return plus_rlock_acquire_slowly(self, deadline_ns);
}

/* Returns 0, or -1 with RuntimeError. */
static inline int
plus_rlock_release(plus_rlock_object *self)
{
    if (plus_rlock_count(self) == 1 && plus_rlock_is_owned(self)) {
        plus_rlock_set_count(self, 0);
        plus_lock_release(&self->lock);
        return 0;
    }
    return plus_rlock_release_slowly(self);
}

/* Makes a lock like threading.Lock().  NULL with an exception. */
PyObject *
plus_lock_new(const struct plus_threads_state *state);

/* Treats arguments as threading.RLock of the running version does: 0, or -1 with an exception. */
int
plus_rlock_refuse_arguments(bool given);

/* The tp_init of both RLocks, which calls it. */
int
plus_rlock_init(PyObject *op, PyObject *args, PyObject *kwargs);
