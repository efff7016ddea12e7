/* Signal handlers that run during a wait; for this room and those above.
 *
 * Everything here is called with the GIL held (attached, on a free-threaded build).
 */
#ifndef PLUS_THREADS_WAITING_H
#define PLUS_THREADS_WAITING_H

#include "../_base/compat.h"
#include "waitq.h"

/* Who runs the signal handlers.  Written with the GIL held, and in the child of a fork. */
extern unsigned long plus_main_ident;

static inline bool
plus_heeds_signals(void)
{
    return PyThread_get_thread_ident() == plus_main_ident;
}

/* Runs the signal handlers that are due, after PLUS_WAIT_SIGNAL: the waiter stays queued, also in a child that one
 * of them forks.  0, or -1 with what one of them raised. */
int
plus_run_handlers(struct plus_waitq *queue, struct plus_waiter *waiter);

#endif
