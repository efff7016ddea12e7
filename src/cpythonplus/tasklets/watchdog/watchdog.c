/* When a tasklet is interrupted, and what happens to it; see watchdog.h.
 *
 * A watch begins with the outermost run() that has a time-out; the caller of that run() is the owner:
 *
 *     counting  --`interval` events-->  over  --may_interrupt()-->  the owner runs, with the victim
 *     asleep    --time has passed-->    due, counting  --next event, if may_interrupt()-->  the same
 *
 *   counting      Events are being reported (interrupts.c): each calls plus_watchdog_event().  With a number of events
 *                 from the beginning; with a time only once that has passed, so that nothing is slower until then
 *                 (except with 3.14's JIT).
 *   due           The total time is over: any running tasklet is interrupted as soon as it may be.
 *   pending_irq   In a tasklet: its own time was over while it could not be interrupted.  It is the watch's serial, so
 *                 a later watch does not take it for its own.
 *   soft          No tasklet is interrupted: the next switch goes to the owner (plus_watchdog_switching()), and no
 *                 events are counted once the watch is due.
 *
 * The victim is parked by an ordinary switch inside of the interpreter's event callback, and goes on by returning from
 * that.  It stays in the run queue meanwhile; run() takes it out and returns it.  `victim` is a reference of its own,
 * dropped if the switch failed or the watch ends without the owner.
 *
 * A tasklet may not be interrupted if it is the owner; if it is atomic, in a callback, or in a thread with its
 * switch_trap set; if it has left the run queue already; and, unless told otherwise, if a C call is between its Python
 * calls, as that may hold any resource.
 *
 * If nothing is runnable and the time has passed, the owner is woken instead.
 *
 * Rejected: raising an exception in the tasklet (it could not go on), and pending calls (only the main thread makes
 * them, one at a time: a tasklet parked in one would block all others).
 */
#include "watchdog.h"

#include "../core/cold.h"
#include "../scheduling/switching.h"
#include "../tracing/interrupts.h"
#include "deadline.h"

/* Looking for C calls costs a step per frame, so it is not done at every event.  The pause varies, because a loop may
 * be inside of C at exactly each eighth event. */
#define NESTING_PAUSE_EVENTS(refusals) (8 + (refusals) % 8)

static unsigned last_serial;

/* ---- beginning and end ------------------------------------------------------------------------ */

static int
count_events(struct plus_scheduler *sched)
{
    if (!sched->watch.counting) {
        if (plus_interrupts_on(sched) < 0) {
            return -1;
        }
        sched->watch.counting = true;
    }
    return 0;
}

static void
stop_counting(struct plus_scheduler *sched)
{
    if (sched->watch.counting) {
        sched->watch.counting = false;
        plus_interrupts_off(sched);
    }
}

void
plus_watchdog_end(struct plus_scheduler *sched)
{
    struct plus_watch *watch = &sched->watch;

    if (watch->owner != NULL) {
        struct plus_tasklet *victim = watch->victim;

        watch->owner = watch->victim = NULL;
        watch->on = false;
        plus_deadline_cancel(sched);
        stop_counting(sched);
        Py_XDECREF(victim);
    }
}

static int
begin_by_time(struct plus_scheduler *sched, double seconds)
{
    if (plus_deadline_prepare() < 0) {
        return -1;
    }
    int at_once = sched->watch.soft ? 0 : seconds <= 0 ? 1 : plus_interrupts_come_too_late();

    if (at_once < 0 || (at_once > 0 && count_events(sched) < 0)) {
        return -1;
    }
    sched->watch.due = seconds <= 0;
    if (seconds > 0) {
        plus_deadline_set(sched, seconds);
    }
    return 0;
}

int
plus_watchdog_begin(struct plus_scheduler *sched, const struct plus_watch_options *options)
{
    bool by_time = options->seconds >= 0;

    /* Checked now, because later there is no caller to get the error. */
    if ((!by_time || !options->soft) && plus_interrupts_prepare() < 0) {
        return -1;
    }
    if (sched->watch.owner != NULL) {
        return 0; /* code that plus_interrupts_prepare() ran has begun a watch */
    }
    if (++last_serial == 0) {
        last_serial = 1;
    }
    sched->watch = (struct plus_watch){
        .owner = sched->running,
        .on = true,
        .serial = last_serial,
        .interval = by_time ? 0 : options->timeout,
        .left = by_time ? 0 : options->timeout,
        .soft = options->soft,
        .ignore_nesting = options->ignore_nesting,
        .total = by_time || options->total,
    };
    if ((by_time ? begin_by_time(sched, options->seconds) : count_events(sched)) < 0) {
        plus_watchdog_end(sched);
        return -1;
    }
    return 0;
}

/* ---- interrupting ----------------------------------------------------------------------------- */

static bool
nesting_allows(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    struct plus_watch *watch = &sched->watch;

    if (watch->ignore_nesting || task->ignore_nesting) {
        return true;
    }
    if (watch->pause > 0) {
        watch->pause--;
        return false;
    }
    struct plus_frames frames = plus_frames_of_thread(sched->tstate);

    if (plus_frames_nesting(&frames) > 0) {
        watch->pause = NESTING_PAUSE_EVENTS(watch->refusals++);
        return false;
    }
    return true;
}

static bool
may_interrupt(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    /* The tasklet may have left the queue already, and run the destructor of a value. */
    return !task->atomic && sched->turn.trap == 0 && !sched->in_callback &&
           sched->current == task && plus_is_runnable(task) && nesting_allows(sched, task);
}

static int
interrupt(struct plus_scheduler *sched, struct plus_tasklet *task, bool between)
{
    bool uncalled = task->uncalled;
    PyObject *result;

    task->pending_irq = 0;
    task->uncalled = true;
    task->between = between && PY_VERSION_HEX >= 0x030C0000;
    Py_XSETREF(sched->watch.victim, (struct plus_tasklet *)Py_NewRef(task));
    int failed = plus_schedule(sched, task, sched->watch.owner, &result);

    task->uncalled = uncalled;
    task->between = false;
    if (failed < 0) {
        Py_CLEAR(sched->watch.victim);
        return -1;
    }
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

int
plus_watchdog_event(struct plus_scheduler *sched, bool counts)
{
    struct plus_watch *watch = &sched->watch;
    struct plus_tasklet *task = sched->running;

    if (task == watch->owner) {
        return 0;
    }
    if (!watch->due && task->pending_irq != watch->serial &&
        (!counts || watch->interval == 0 || --watch->left > 0)) {
        return 0;
    }
    if (watch->soft) {
        watch->due = true; /* the next switch checks it */
        stop_counting(sched);
        return 0;
    }
    if (may_interrupt(sched, task)) {
        return interrupt(sched, task, counts);
    }
    watch->due = watch->total;
    task->pending_irq = watch->serial;
    return 0;
}

void
plus_watchdog_expire(struct plus_scheduler *sched)
{
    sched->watch.due = true;
    plus_scheduler_wake(sched);
    if (!sched->watch.soft && count_events(sched) < 0) {
        PyErr_WriteUnraisable((PyObject *)sched->watch.owner);
    }
}

bool
plus_watchdog_wake_owner(struct plus_scheduler *sched)
{
    struct plus_tasklet *owner = sched->watch.owner;
    bool wakes = sched->watch.due && plus_is_floating(owner);

    if (wakes) {
        plus_queue_insert((struct plus_tasklet *)Py_NewRef(owner));
    }
    return wakes;
}

/* ---- switching -------------------------------------------------------------------------------- */

void
plus_watchdog_entering(struct plus_scheduler *sched, struct plus_tasklet *next)
{
    if (sched->watch.counting && next != sched->watch.owner && next->started) {
        plus_tasklet_warm(next);
        plus_interrupts_extend(next);
    }
}

struct plus_tasklet *
plus_watchdog_switching(struct plus_scheduler *sched, struct plus_tasklet *prev,
                        struct plus_tasklet *next)
{
    struct plus_watch *watch = &sched->watch;

    /* The owner runs before the tasklet whose turn it would be. */
    if (watch->soft && watch->due && !watch->stay && prev != watch->owner && next != watch->owner &&
        plus_is_floating(watch->owner) && nesting_allows(sched, prev)) {
        plus_queue_link((struct plus_tasklet *)Py_NewRef(watch->owner), next);
        sched->runcount++;
        next = watch->owner;
    }
    watch->stay = false;
    watch->pause = 0;
    if (prev != next) {
        if (!watch->total) {
            watch->left = watch->interval;
        }
        plus_watchdog_entering(sched, next);
    }
    else if (watch->counting && next != watch->owner) {
        plus_interrupts_begin(sched); /* the tasklet may have set a trace function */
    }
    return next;
}
