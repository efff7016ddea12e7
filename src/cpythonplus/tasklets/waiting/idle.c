/* The wait of a thread that has no runnable tasklet, until another thread makes one runnable.
 *
 *   thread   finds its run queue empty; queues at `line`; sets `blocked`; releases the GIL
 *   other    with the GIL: puts a tasklet into the run queue; plus_idle_wake() clears `blocked` and wakes the thread
 *
 * The first three steps are atomic for other threads, as the GIL is held: no wake-up is lost.  The waker clears
 * `blocked`, not the woken thread: the next thread that has nothing to run asks which thread could still wake it, and
 * this one could, although it does not have the GIL yet.
 *
 * Signals: only the main thread's wait heeds them.  Its handlers run during the wait, with no tasklet current: they may
 * put tasklets into the queue and wait for others, but not switch.  `blocked` is cleared meanwhile.  If a handler
 * forks, the wait stays in the line, in the child as well.  An exception of a handler ends the wait.
 *
 * The caller checks timers and descriptors; this file only gets the earliest deadline.
 */
#include "idle.h"

#include "../../threads/waiting/present_waits.h"
#include "../../threads/waiting/waiting.h"

/* No tasklet is current, so a signal handler may wait, but not switch.  While it runs, the thread may still make a
 * tasklet runnable, so it does not count as blocked. */
static int
run_handlers(struct plus_scheduler *sched, struct plus_waiter *waiter)
{
    bool in_callback = sched->in_callback, in_handler = sched->in_handler;

    sched->in_callback = sched->in_handler = true;
    sched->idle.blocked = false;
    int failed = Py_MakePendingCalls();

    plus_waiter_resumed(waiter);
    /* The wait may have been ended meanwhile. */
    sched->idle.blocked = plus_waitq_length(&sched->idle.line) > 0;
    sched->in_callback = in_callback;
    sched->in_handler = in_handler;
    return failed;
}

/* The line has one waiter at most: the scheduler's own thread.  Rejected: a futex word of the scheduler alone; a woken
 * thread needs 20 us to start running then, and no object learns when polling pays. */
int
plus_idle_wait(struct plus_scheduler *sched, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    enum plus_wait_result result;
    int failed = 0;

    struct plus_present_wait present = {&waiter, deadline_ns};

    plus_waiter_init(&waiter, plus_heeds_signals());
    plus_waiter_tells(&waiter, NULL, "tasklets");
    waiter.stays = true;
    plus_waitq_lock(&sched->idle.line);
    plus_waitq_append(&sched->idle.line, &waiter);
    plus_waitq_unlock(&sched->idle.line);
    sched->idle.blocked = true;
    plus_stacks_settle(&sched->stacks);
    do {
        plus_present_wait_begins(&present);
        Py_BEGIN_ALLOW_THREADS
        result = plus_waiter_wait_nogil(&sched->idle.line, &waiter, deadline_ns);
        Py_END_ALLOW_THREADS
        plus_present_wait_ends();
        if (result == PLUS_WAIT_SIGNAL) {
            result = plus_waiter_interrupt(&sched->idle.line, &waiter);
        }
        else {
            plus_waiter_arrived(&waiter);
        }
        if (result == PLUS_WAIT_SIGNAL) {
            failed = run_handlers(sched, &waiter);
        }
    } while (result == PLUS_WAIT_SIGNAL && failed == 0);
    if (failed) {
        plus_waiter_leave(&sched->idle.line, &waiter);
    }
    sched->idle.blocked = false;
    return failed;
}

void
plus_idle_wake(struct plus_scheduler *sched)
{
    sched->idle.blocked = false;
    if (plus_waitq_length(&sched->idle.line) > 0) {
        plus_waitq_wake(&sched->idle.line, 1);
    }
}
