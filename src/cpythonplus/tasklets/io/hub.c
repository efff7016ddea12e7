/* The protocol between tasklets and the event loop of their thread.
 *
 * The hub is the tasklet that runs the loop.  The loop calls it for a *turn* when the poller's descriptor is ready.  In
 * its turn the hub checks descriptors and timers, and lets the other tasklets run.  It ends the turn when nothing can
 * run, or when the loop's own callbacks have waited for LOOP_EVERY_NS; in the second case it asks for another turn at
 * once.
 *
 *   hub       the hub that is in its turn or waits for one; NULL: there is no loop, or the hub is in other code
 *   rests     no tasklet waits for our own loop: its hub is out of the run queue until one does
 *   sleeps    the turn ended with nothing runnable: the loop is about to wait, or waits
 *   owed      the loop was roused, and has not had its turn since
 *   due       the other tasklets have run for long, and the loop is needed: plus_schedule() puts the hub right after
 *             the next tasklet
 *
 * All of it serves one rule: a loop must not wait while a tasklet can run.  Before it waits, the timer is set to the
 * earliest deadline (give_turns).  From then on code that makes a tasklet runnable writes to the poller's descriptor
 * (plus_hub_rouse): another thread, a signal handler, a callback of the loop itself.
 *
 * There is one trap: the descriptor reports an event once.  If other code reads it before the loop does, the loop
 * sleeps on.  So code that checks the descriptor while a turn is owed, or the loop sleeps, sets the timer to OWED_NS
 * from now.
 *
 * A check handles descriptors first, then timers: an event that came in time is not too late.
 *
 * A thread that has nothing to run, and no loop to wait in, sleeps without one: see outside.c.
 *
 * fork: the loop's descriptors are the parent's.  Unless the hub itself forks, it stays suspended for ever, and the
 * child starts another one when a tasklet waits.
 */
#include "hub.h"

#include "../../_base/process/clock.h"
#include "../core/lists.h"
#include "../scheduling/loop.h"
#include "../scheduling/parking.h"
#include "../scheduling/switching.h"
#include "../watchdog/watchdog.h"
#include "poller.h"

/* Between checks while tasklets are runnable: a system call is a small part of that. */
#define LOOK_EVERY_SWITCHES 16u
#define LOOK_EVERY_NS (20 * PLUS_NS_PER_US)
#define LOOK_OFTEN_NS PLUS_NS_PER_MS /* if that many switches take this long, check at each */

/* The loop's own callbacks and descriptors get their turn after this time, however many tasklets can run. */
#define LOOP_EVERY_NS (500 * PLUS_NS_PER_US)

/* A tasklet whose calls find everything ready lets the others run after this time, about as long as a thread keeps the
 * GIL. */
#define GIVE_WAY_NS PLUS_NS_PER_MS

/* The event that roused a loop may be read by other code before the loop sees it; it is repeated after this time. */
#define OWED_NS PLUS_NS_PER_MS

/* Called after descriptors were checked.  Any code may switch while our loop sleeps: a signal handler, or callbacks of
 * the loop.  The tasklet that runs then checks descriptors, whose events are reported once: the loop would sleep on,
 * with runnable tasklets. */
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
    plus_timers_fire(sched, now_ns); /* last: an event that came in time is not too late */
    if (plus_loop_waits(sched) && now_ns - sched->loop.turn_ns >= LOOP_EVERY_NS) {
        sched->loop.due = true;
    }
}

void
plus_look_soon(struct plus_scheduler *sched)
{
    uint64_t now_ns = plus_now_ns(), since_ns = now_ns - sched->loop.looked_ns;

    sched->loop.look_in = LOOK_EVERY_SWITCHES;
    /* Code that the loop calls may switch to a tasklet that is still runnable when the loop goes on to sleep. */
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

/* The limit is a time, not a number of calls, because the work between two calls may take long.  It counts from the
 * first call of a turn: the beginning of the turn is not known, and a tasklet that has just begun is expected to go on
 * to its wait.  If switching is refused the call goes on, as it might not have waited. */
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
    plus_look(sched, plus_now_ns()); /* now, because at the switch it would be too late */
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

/* Lets the others run.  Returns 0, or -1 with an exception. */
static int
let_others_run(struct plus_scheduler *sched, struct plus_tasklet *hub, bool rest, bool replaced)
{
    sched->loop.rests = rest && !replaced;
    PyObject *result = plus_schedule_current(sched, Py_None, rest || replaced);

    if (sched->loop.hub == hub) {
        sched->loop.rests = false;
    }
    else if (sched->loop.hub == NULL) {
        sched->loop.hub = hub; /* the other hub's loop has ended, or that hub waits in other code */
    }
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

/* Returns as plus_hub_turn(). */
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
            sched->loop.look_in = 0; /* a switch from now on is not part of a turn */
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
        sched->loop.hub = NULL; /* the hub may end, or wait in other code of its loop */
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
        Py_DECREF(hub); /* its maker has another reference */
    }
}

void
plus_hub_after_fork(struct plus_scheduler *sched)
{
    struct plus_tasklet *own = sched->loop.own_hub;

    leave_behind(sched, sched->loop.hub);
    if (own != sched->loop.hub) { /* our hub has not begun, or a loop of the program runs */
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
