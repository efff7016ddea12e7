/* Waiting without the GIL, and the signal handlers that run meanwhile; for this room and those above.
 *
 * Everything here is called with the GIL held (attached, on a free-threaded build).
 */
#ifndef PLUS_THREADS_WAITING_H
#define PLUS_THREADS_WAITING_H

#include "../../_base/compat.h"
#include "../../_base/process/futex.h"
#include "lock.h"

/* Who runs the signal handlers.  Written with the GIL held, and in the child of a fork. */
extern unsigned long plus_main_ident;

static inline bool
plus_heeds_signals(void)
{
    return PyThread_get_thread_ident() == plus_main_ident;
}

/* In the child of a fork: the forking thread is the main thread from now on. */
void
plus_waiting_atfork_child(void);

/* Waits until `lock` is the calling thread's or the dead line has passed; signal handlers run
 * meanwhile.  1: acquired; 0: timed out; -1 with what a handler raised, or PythonFinalizationError. */
int
plus_acquire(struct plus_lock *lock, uint64_t deadline_ns);

/* The same without a dead line; tries first.  0, or -1 with an exception. */
static inline int
plus_lock_enter(struct plus_lock *lock)
{
    if (plus_lock_try(lock, plus_identity())) {
        return 0;
    }
    return plus_acquire(lock, PLUS_FUTEX_NO_DEADLINE) < 0 ? -1 : 0;
}

/* Without a dead line, and the lock is held afterwards in any case.  0, or -1 with what a signal handler raised meanwhile.
 * An exception that was set before is set still, or is the context of that one. */
int
plus_acquire_surely(struct plus_lock *lock);

/* Waits in `queue`, where `waiter` is queued already.  GRANTED or TIMED_OUT; WOKEN: look again, and queue it again if
 * need be; SIGNAL with what a handler raised.  The waiter is not queued afterwards, and nothing was given to it but
 * after GRANTED. */
enum plus_wait_result
plus_wait(struct plus_waitq *queue, struct plus_waiter *waiter, uint64_t deadline_ns);

#endif
