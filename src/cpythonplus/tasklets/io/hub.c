/* The protocol between tasklets and the event loop of their thread.
 *
 * The hub is the tasklet that is in the loop.  The loop calls it for a *turn* when the poller's descriptor is ready.
 * In its turn the hub looks at descriptors and timers, and lets the others run.  It gives the turn back when nothing
 * can run, or when the loop's own callbacks have waited for LOOP_EVERY_NS; in the second case it asks for another one
 * at once.
 *
 *   hub          who is in its turn or waits for one; NULL: no loop, or it is in the midst of something of its own
 *   rests        a loop of ours for which nobody waits: out of the run queue until somebody does
 *   sleeps       the turn was given back with nothing runnable: the loop is about to wait, or waits
 *   owed         the loop was roused, and has not had its turn since
 *   due          the others have run for long, and the loop is wanted: plus_schedule() puts it right behind who comes
 *                next
 *
 * The rule that all of it serves: a loop must not wait while a tasklet can run.  Before it waits the timer stands at
 * the earliest dead line (give_turns).  From then on whoever makes a tasklet runnable writes to the poller's descriptor
 * (plus_hub_rouse): another thread, a signal's handler, a callback of the loop itself.
 *
 * And one trap: what the descriptor tells is told once.  If somebody else looks at it before the loop does, the loop
 * sleeps on.  So whoever looks while a turn is owed, or the loop sleeps, sets the timer to OWED_NS from now.
 *
 * Order in a look: descriptors first, then timers.  What was there in time is not too late.
 *
 * A thread that has nothing to run, and no loop to wait in, sleeps without one: see idle.c.
 *
 * fork: the loop's descriptors are the parent's.  Unless it is the hub that forks, it stays as it is, for ever, and the
 * child begins another one when somebody waits.
 */
#include "hub.h"

#include "../../_base/process/clock.h"
#include "../core/lists.h"
#include "../scheduling/loop.h"
#include "../scheduling/parking.h"
#include "../scheduling/switching.h"
#include "../watchdog/watchdog.h"
#include "poller.h"

/* Between looks while tasklets are runnable: a system call is a small part of that. */
#define LOOK_EVERY_SWITCHES 16u
#define LOOK_EVERY_NS (20 * PLUS_NS_PER_US)
#define LOOK_OFTEN_NS PLUS_NS_PER_MS /* where so many switches take that long, after each */

/* The loop's own callbacks and descriptors get their turn after so long, however many tasklets can run. */
#define LOOP_EVERY_NS (500 * PLUS_NS_PER_US)

/* One whose calls find everything ready lets the others run after so long; a thread has the GIL for that order of time. */
#define GIVE_WAY_NS PLUS_NS_PER_MS

/* What has roused a loop may be looked at, and so be gone, before the loop sees it; then that comes once more. */
#define OWED_NS PLUS_NS_PER_MS

/* Anybody may switch while a loop of ours sleeps: a signal's handler, or what the loop itself calls.  Who is
 * switched to looks after descriptors, and what they tell is told once: the loop would sleep on, with runnable
 * tasklets. */
void
plus_hub_looked(struct plus_scheduler *sched, uint64_t now_ns)
{
    if (sched->loop.sleeps || sched->loop.owed) {
        sched->loop.sleeps = false;
        sched->loop.owed = true;
        plus_poller_arm(sched->io.poller, now_ns + OWED_NS);
    }
}

void
plus_look(struct plus_scheduler *sched, uint64_t now_ns)
{
    sched->loop.looked_ns = now_ns;
    sched->loop.look_in = LOOK_EVERY_SWITCHES;
    if (sched->io.poller != NULL) {
        plus_poller_look(sched->io.poller);
        plus_hub_looked(sched, now_ns);
    }
    plus_timers_fire(sched, now_ns); /* last: what is there in time is not too late */
    if (plus_loop_waits(sched) && now_ns - sched->loop.turn_ns >= LOOP_EVERY_NS) {
        sched->loop.due = true;
    }
}

void
plus_look_soon(struct plus_scheduler *sched)
{
    uint64_t now_ns = plus_now_ns(), since_ns = now_ns - sched->loop.looked_ns;

    sched->loop.look_in = LOOK_EVERY_SWITCHES;
    /* What the loop calls switches, to one that may still be runnable when the loop goes on, and to sleep. */
    if (sched->loop.sleeps) {
        plus_hub_rouse(sched);
    }
    if (since_ns >= LOOK_EVERY_NS) {
        plus_look(sched, now_ns);
    }
    if (since_ns >= LOOK_OFTEN_NS) {
        sched->loop.look_in = 0;
    }
}

/* By time, not by a number of calls: what is done between two calls may take long.  From the first call of a turn on:
 * when the turn began is not known, and one that has just begun is expected to go on to its wait.  Where nothing is to be
 * switched the call goes on, as it might not have waited. */
int
plus_give_way(struct plus_scheduler *sched)
{
    const struct plus_tasklet *task = sched->running;
    uint64_t now_ns = plus_now_coarse_ns();

    if (sched->io.eager != task) {
        sched->io.eager = task;
        sched->io.eager_ns = now_ns;
        return 0;
    }
    bool others = sched->runcount > 1 || plus_outside(sched) || plus_loop_waits(sched);

    if (now_ns - sched->io.eager_ns < GIVE_WAY_NS || !others || sched->in_handler ||
        sched->in_callback || sched->turn.trap || task->atomic) {
        return 0;
    }
    plus_look(sched, plus_now_ns()); /* else it came at the switch, too late to take part in it */
    int result = plus_sleep_until(sched, 0);

    sched->io.eager = task;
    sched->io.eager_ns = plus_now_coarse_ns();
    return result;
}

void
plus_hub_rouse(struct plus_scheduler *sched)
{
    if (sched->loop.sleeps || sched->io.sleeps) {
        sched->loop.owed |= sched->loop.sleeps;
        sched->loop.sleeps = sched->io.sleeps = false;
        plus_poller_rouse(sched->io.poller);
    }
}

void
plus_hub_owe(struct plus_scheduler *sched)
{
    if (sched->io.poller != NULL) {
        sched->loop.sleeps = false;
        sched->loop.owed = true;
        plus_poller_rouse(sched->io.poller);
    }
}

static bool
has_nothing_to_do(const struct plus_scheduler *sched)
{
    return sched->io.waiting == 0 && sched->loop.asked == 0;
}

/* Lets the others run.  0, or -1 with an exception. */
static int
let_others_run(struct plus_scheduler *sched, struct plus_tasklet *hub, bool rest, bool replaced)
{
    sched->loop.rests = rest && !replaced;
    PyObject *result = plus_schedule_current(sched, Py_None, rest || replaced);

    if (sched->loop.hub == hub) {
        sched->loop.rests = false;
    }
    else if (sched->loop.hub == NULL) {
        sched->loop.hub = hub; /* the other one's loop has ended, or it waits in the midst of it */
    }
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* As plus_hub_turn(). */
static int
give_turns(struct plus_scheduler *sched, struct plus_tasklet *hub, bool ours)
{
    uint64_t start_ns = plus_now_ns(), now_ns = start_ns;

    sched->loop.turn_ns = start_ns;
    plus_look(sched, now_ns);
    while (now_ns - start_ns < LOOP_EVERY_NS) {
        bool alone = hub->next == hub, replaced = ours && sched->loop.hub != hub;
        bool rest = ours && has_nothing_to_do(sched);

        if (alone && !rest) {
            if (sched->watch.on && plus_watchdog_wake_owner(sched)) {
                continue;
            }
            plus_poller_arm(sched->io.poller, plus_timers_earliest(&sched->parking.timers));
            sched->loop.sleeps = true;
            sched->loop.look_in = 0; /* the next switch is one that the loop has not given */
            plus_stacks_settle(&sched->stacks);
            return 0;
        }
        if (let_others_run(sched, hub, rest, replaced) < 0) {
            return -1;
        }
        now_ns = plus_now_ns();
        if (hub->next == hub) {
            plus_look(sched, now_ns);
        }
    }
    return 1;
}

int
plus_hub_turn(struct plus_scheduler *sched, bool ours)
{
    struct plus_tasklet *hub = sched->running;

    if (plus_poller_get(sched) == NULL) {
        return -1;
    }
    sched->loop.hub = hub;
    sched->loop.rests = sched->loop.sleeps = sched->loop.owed = false;
    int result = give_turns(sched, hub, ours);

    if (sched->loop.hub == hub) {
        sched->loop.hub = NULL; /* it may end, or wait in the midst of its loop */
    }
    return result;
}

void
plus_hub_end(struct plus_scheduler *sched)
{
    sched->loop.hub = NULL;
    sched->loop.sleeps = sched->loop.owed = false;
    Py_CLEAR(sched->loop.own_hub);
    Py_CLEAR(sched->loop.loops);
    plus_poller_free(sched->io.poller);
    sched->io.poller = NULL;
    Py_CLEAR(sched->parking.sleepers);
    Py_CLEAR(sched->loop.askers);
}

static void
leave_behind(const struct plus_scheduler *sched, struct plus_tasklet *hub)
{
    if (hub != NULL && hub != sched->running && plus_is_runnable(hub)) {
        plus_queue_remove(hub);
        Py_DECREF(hub); /* who made it has another one */
    }
}

void
plus_hub_after_fork(struct plus_scheduler *sched)
{
    struct plus_tasklet *own = sched->loop.own_hub;

    leave_behind(sched, sched->loop.hub);
    if (own != sched->loop.hub) { /* it has not begun, or a loop of the program's runs */
        leave_behind(sched, own);
    }
    if (sched->loop.hub != sched->running) {
        sched->loop.hub = NULL;
    }
    sched->loop.own_hub = NULL;
    sched->loop.rests = sched->loop.sleeps = sched->loop.owed = false;
    sched->loop.asked = 0;
    plus_poller_after_fork(sched);
    Py_XDECREF(own);
    if (sched->io.waiting > 0 && sched->loop.hub == NULL && plus_loop_ensure(sched) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
}
