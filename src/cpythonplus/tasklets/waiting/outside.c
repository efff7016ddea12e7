/* The wait of a thread that has no runnable tasklet.
 *
 * A tasklet can become runnable by another thread (a channel, a lock, insert()), a time, a descriptor, or asyncio.  So
 * the thread checks, in this order, until one is runnable:
 *
 *   1. Its watch: run(timeout) ends when its time is over, whatever waits.
 *   2. Times and descriptors (hub.c): tasklets that are due become runnable.
 *   3. The hub: it is started if tasklets wait for asyncio and no loop runs any more.
 *   4. Whether anything can help at all.  A parked tasklet (parking.c) is never a deadlock: a signal handler may end
 *      its wait.  A tasklet that is blocked in a channel waits for another tasklet; if every other thread is blocked
 *      likewise, none can come, and that is a deadlock, with a report of what waits for what.
 *   5. Sleep: until plus_outside_wake(), the earliest time, or a descriptor.
 *
 * Code that makes a tasklet runnable holds the GIL, and wakes afterwards.  The GIL is given up in steps 5 and 3, which
 * runs Python code.  The queue is checked after both, so either the check sees the tasklet, or the sleeper is woken.  A
 * thread that ends wakes nobody, though step 4 counted on it; so step 5 lasts RECHECK_NS at most.
 *
 * An exception of a handler ends step 5.  If a tasklet can run by then, it was given something, which raising the
 * exception in its place would lose; so a pending call raises the exception right after the switch.
 *
 * No tasklet is current meanwhile.  Signal handlers run in step 5, Python code in step 3 and in the report, after which
 * the queue is checked too; `in_callback` makes them refuse to switch.
 *
 * Step 5 without descriptors:
 *
 *   thread   finds its run queue empty; queues at `line`; sets `blocked`; releases the GIL
 *   other    with the GIL: puts a tasklet into the run queue; plus_outside_wake() clears `blocked` and wakes the thread
 *
 * The first three steps are atomic for other threads, as the GIL is held: no wake-up is lost.  The waker clears
 * `blocked`, not the woken thread: the next thread that has nothing to run asks which thread could still wake it, and
 * this one could, although it does not have the GIL yet.  The thread polls a moment before it sleeps, as the locks of
 * the threads room do (threads/waiting/spin.h): an answer that comes at once, from another processor, then costs no
 * system call.
 *
 * Signals: only the main thread's wait heeds them.  Its handlers may put tasklets into the queue and wait for others,
 * but not switch.  `blocked` is cleared meanwhile.  If a handler forks, the wait stays in the line, in the child as
 * well, where no other thread waits.
 */
#include "outside.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../../threads/waiting/present_waits.h"
#include "../../threads/waiting/waiting.h"
#include "../_dump/report.h"
#include "../core/bomb.h"
#include "../io/hub.h"
#include "../io/poller.h"
#include "../scheduling/loop.h"
#include "../watchdog/deadline.h"
#include "../watchdog/watchdog.h"

#define RECHECK_NS PLUS_NS_PER_S /* a thread that ends does not wake threads that waited for it */

bool plus_foreign_wakers = true;

bool
plus_outside_may_help(struct plus_scheduler *sched)
{
    PyThreadState *tstate =
        PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(sched->tstate));

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        struct plus_scheduler *other = plus_scheduler_of(tstate);

        bool may = other != NULL ? !other->idle.blocked
                                 : plus_foreign_wakers && !plus_deadline_is_ours(tstate);

        if (tstate != sched->tstate && may) {
            return true;
        }
    }
    return false;
}

void
plus_outside_wake(struct plus_scheduler *sched)
{
    plus_hub_rouse(sched);
    sched->idle.blocked = false;
    if (plus_waitq_length(&sched->idle.line) > 0) {
        plus_waitq_wake(&sched->idle.line, 1);
    }
}

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

/* Waits for plus_outside_wake() or deadline_ns.  The line has one waiter at most: the scheduler's own thread.
 * Rejected: a futex word of the scheduler alone; a woken thread needs 20 us to start running then, and no object learns
 * when polling pays. */
static int
wait_without_gil(struct plus_scheduler *sched, uint64_t deadline_ns)
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

/* Sleeps until plus_scheduler_wake(), a timer, or a descriptor if there is no event loop to wait for it.  Returns 0, or
 * -1 with the exception of a signal handler. */
static int
sleep_once(struct plus_scheduler *sched)
{
    uint64_t recheck_ns = plus_now_ns() + RECHECK_NS;
    uint64_t timer_ns = plus_timers_earliest(&sched->parking.timers);
    uint64_t deadline_ns = timer_ns < recheck_ns ? timer_ns : recheck_ns;

    if (sched->io.waiting == 0) {
        return wait_without_gil(sched, deadline_ns);
    }
    sched->idle.blocked = true;
    plus_poller_wait(sched->io.poller, deadline_ns);
    plus_hub_looked(sched, plus_now_ns());
    sched->idle.blocked = false;
    if (sched->current != NULL) {
        return 0; /* the next tasklet runs the signal handlers */
    }
    /* No tasklet is current now, so a handler may wait, but not switch. */
    bool in_callback = sched->in_callback, in_handler = sched->in_handler;

    sched->in_callback = sched->in_handler = true;
    int signals = PyErr_CheckSignals();

    sched->in_callback = in_callback;
    sched->in_handler = in_handler;
    return signals;
}

int
plus_outside_wait(struct plus_scheduler *sched)
{
    int result = 1;

    sched->idle.resting = true;
    while (sched->current == NULL) {
        if (sched->watch.on && plus_watchdog_wake_owner(sched)) {
            break;
        }
        plus_look(sched, plus_now_ns());
        /* Tasklets wait for a loop of ours that the program's own loop had replaced, and that has ended.  This does not
         * import the hub's module (it has been imported): the tasklet that was parked last may be inside of an
         * import. */
        if (sched->loop.hub == NULL && plus_loop_is_asked(sched)) {
            bool in_callback = sched->in_callback;

            sched->in_callback = true;
            if (plus_loop_ensure(sched) < 0) {
                PyErr_WriteUnraisable(NULL);
            }
            sched->in_callback = in_callback;
        }
        if (sched->current != NULL) {
            break;
        }
        if (sched->parking.count == 0 && !plus_outside_may_help(sched)) {
            result = 0;
            break;
        }
        if (sleep_once(sched) < 0) {
            if (sched->current == NULL) {
                result = -1;
                break;
            }
            /* The tasklet was given something, which must not be lost: the exception is raised later. */
            plus_raise_soon_or_print(plus_compat_take_exception());
        }
    }
    sched->idle.resting = false;
    return result;
}

PyObject *
plus_outside_deadlock(struct plus_scheduler *sched, const char *text)
{
    PyObject *exception = PyObject_CallFunction(PyExc_RuntimeError, "s", text);

    if (exception == NULL) {
        return plus_bomb_from_error();
    }
    plus_report_add_note(sched, exception);
    if (sched->current != NULL) {
        Py_DECREF(exception);
        return NULL;
    }
    PyErr_SetObject(PyExc_RuntimeError, exception);
    Py_DECREF(exception);
    return plus_bomb_from_error();
}
