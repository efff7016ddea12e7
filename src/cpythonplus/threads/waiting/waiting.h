/* Waiting without the GIL, with the signal handlers that run meanwhile; for this room and those above.
 *
 * Everything here is called with the GIL held (attached, on a free-threaded build).
 */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/process/futex.h"
#include "lock.h"

/* The thread that runs signal handlers.  Written with the GIL held, and in the child of a fork. */
extern unsigned long plus_main_ident;

static inline bool
plus_heeds_signals(void)
{
    return PyThread_get_thread_ident() == plus_main_ident;
}

/* Called in the child of a fork: the forking thread is the main thread from now on. */
void
plus_waiting_atfork_child(void);

/* Waits until the calling thread has `lock` or the deadline has passed; signal handlers run meanwhile.  1: acquired;
 * 0: timed out; -1 with the exception of a handler, or PythonFinalizationError. */
int
plus_acquire(struct plus_lock *lock, uint64_t deadline_ns);

/* Acquires `lock` without a deadline; does not wait if the lock is free.  Returns 0, or -1 with an exception. */
static inline int
plus_lock_enter(struct plus_lock *lock)
{
    if (plus_lock_try(lock, plus_identity())) {
        return 0;
    }
    return plus_acquire(lock, PLUS_FUTEX_NO_DEADLINE) < 0 ? -1 : 0;
}

/* Waits without a deadline; the lock is held afterwards in any case.  Returns 0, or -1 with the exception of a signal
 * handler.  An exception that was set before stays set, or becomes the context of the handler's. */
int
plus_acquire_surely(struct plus_lock *lock);

/* Waits in `queue`, in which `waiter` is queued already.  Returns GRANTED or TIMED_OUT; WOKEN: check again, and queue
 * the waiter again if need be; SIGNAL with the exception of a handler.  The waiter is not queued afterwards, and was
 * given something only if GRANTED is returned. */
enum plus_wait_result
plus_wait(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns);
