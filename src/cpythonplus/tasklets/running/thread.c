/* The beginning and the end of a thread's scheduler, and of all tasklets in it.
 *
 * A scheduler is made at the first call that needs one, and tied to the thread by a capsule in the dict of the thread
 * state.  The interpreter clears that dict when the thread ends, when the interpreter ends, and after a fork for each
 * thread that is gone; only the capsule's destructor ends a scheduler.  The calling thread decides what can be done:
 *
 *   - The thread itself: its tasklets are killed, each on its own C stack, so that their `finally` clauses run.  The
 *     interpreter may have cleared more of the thread state before, and does not clear again what they leave there.
 *   - Another thread, at the interpreter's end or in the child of a fork: the C stacks belong to a thread that cannot
 *     run them, and are left as they are.  Tasklets in channels are taken out, as they can receive nothing any more.
 *
 * The thread's end kills in an order that loses nothing.  A hub that was given coroutines begins, so that its loop can
 * end them.  Tasklets that are blocked in a channel leave it, as another thread could still send.  Tasklets that have
 * not begun are dropped.  The others get TaskletExit until they end, but not for ever.
 *
 * Tasklets may outlive their thread: each holds a reference to the scheduler's memory.  `tstate` is NULL from then on,
 * and code that would insert or run them checks it first.
 *
 * At the interpreter's end (atexit) the main thread's tasklets are killed while everything still works; those that do
 * not end are abandoned, and from then on switching is refused.
 *
 * Called with the GIL held.
 */
#include "thread.h"

#include "../_pickling/vacating.h"
#include "../core/overflow.h"
#include "../core/own_stack.h"
#include "../io/hub.h"
#include "../scheduling/switching.h"
#include "../waiting/outside.h"
#include "../watchdog/watchdog.h"
#include "tasklet.h"
#include "tasklet_py.h"

/* Id of the last thread state here whose scheduler has ended.  Destructors of its other objects run afterwards. */
static _Thread_local uint64_t ended_id;

static const char dict_key[] = "cpythonplus.tasklets";

/* ---- the end ---------------------------------------------------------------------------------- */

/* Tasklets that are to end, each with a reference.  All of them are found at once: searching for the next one after
 * each end would take time quadratic in their number. */
struct found {
    struct plus_tasklet **all, *few[64]; /* without memory `all` points to `few` */
    size_t count, room;
    bool (*matches)(const struct plus_tasklet *);
};

static bool
is_blocked(const struct plus_tasklet *task)
{
    return task->blocked != 0; /* the channel's reference keeps it alive */
}

static bool
is_to_end(const struct plus_tasklet *task)
{
    return task->alive && !task->abandoned && task->sched->running != task && plus_is_in_use(task);
}

static bool
is_new(const struct plus_tasklet *task)
{
    return plus_is_runnable(task) && !task->started && !task->vacated;
}

static int
note(void *owner, void *arg)
{
    struct found *found = arg;

    if (found->matches(owner)) {
        found->all[found->count++] = (struct plus_tasklet *)Py_NewRef(owner);
    }
    return found->count == found->room;
}

static size_t
count_begun(const struct plus_scheduler *sched)
{
    size_t count = sched->stacks.in_use;

    for (const struct plus_tasklet *it = sched->vacated; it != NULL; it = it->vacated_next) {
        count++;
    }
    return count;
}

/* Finds matches among the tasklets that have begun, or else among the runnable ones. */
static void
find(struct plus_scheduler *sched, bool begun, struct found *found)
{
    struct plus_tasklet *task = begun ? sched->vacated : sched->current;

    found->count = 0;
    found->room = begun ? count_begun(sched) : (size_t)sched->runcount;
    found->all = malloc((found->room + 1) * sizeof(struct plus_tasklet *));
    if (found->all == NULL) {
        found->all = found->few;
        found->room = sizeof(found->few) / sizeof(*found->few);
    }
    if (begun && plus_stacks_each(&sched->stacks, note, found) != 0) {
        return;
    }
    for (int i = 0; task != NULL && (begun || i < sched->runcount); i++) {
        if (note(task, found) != 0) {
            return;
        }
        task = begun ? task->vacated_next : task->next;
    }
}

static int
by_time(const void *left, const void *right)
{
    uint64_t a = (*(struct plus_tasklet *const *)left)->parked_ns;
    uint64_t b = (*(struct plus_tasklet *const *)right)->parked_ns;

    return (a > b) - (a < b);
}

/* Calls `end` for each tasklet that still matches when its turn comes, until none is found or `most` were ended.  Code
 * that runs meanwhile may begin others, and a tasklet may go on in spite of its end: these come again, after all
 * others.
 *
 * The tasklets that have waited longest come first: each leaves the line of a condition or a queue, which is searched
 * from its head. */
static void
end_each(struct plus_scheduler *sched, bool begun, bool (*matches)(const struct plus_tasklet *),
         void (*end)(struct plus_tasklet *), size_t most)
{
    struct found found = {.matches = matches};

    do {
        find(sched, begun, &found);
        qsort(found.all, found.count, sizeof(*found.all), by_time);
        for (size_t i = 0; i < found.count; i++) {
            if (most > 0 && matches(found.all[i])) {
                most--;
                end(found.all[i]);
            }
            Py_DECREF(found.all[i]);
        }
        if (found.all != found.few) {
            free(found.all);
        }
    } while (found.count > 0 && most > 0);
}

/* Removes a blocked tasklet before it is ended: other threads go on meanwhile, and what they sent to it would be
 * lost. */
static void
kill_soon(struct plus_tasklet *task)
{
    PyObject *result = plus_tasklet_kill(task, true);

    if (result == NULL) {
        PyErr_Clear(); /* no memory */
    }
    if (task->blocked) {
        plus_channel_remove(task);
        plus_queue_insert(task);
    }
    Py_XDECREF(result);
}

static void
kill_now(struct plus_tasklet *task)
{
    plus_drop_result(plus_tasklet_kill(task, false), (PyObject *)task);
}

static void
take_from_queue(struct plus_tasklet *task)
{
    plus_queue_remove(task);
    Py_DECREF(task);
}

/* A tasklet that cannot run any more must not be met in a channel: what is sent to it would be lost. */
static void
take_from_channel(struct plus_tasklet *task)
{
    plus_channel_remove(task);
    Py_DECREF(task);
}

static void
kill_all(struct plus_scheduler *sched)
{
    struct plus_tasklet *hub = sched->loop.own_hub;

    /* A hub that has not begun may have coroutines: let it run, since the end of its loop ends them. */
    if (hub != NULL && !hub->started && plus_is_runnable(hub)) {
        Py_INCREF(hub); /* hold the hub: its other references may be dropped at its end */
        plus_drop_result(plus_tasklet_run(hub, false), (PyObject *)hub);
        Py_DECREF(hub);
    }
    end_each(sched, true, is_blocked, kill_soon, SIZE_MAX);
    /* Ending a tasklet runs the queue, so take out the tasklets that have not begun: they must not begin now. */
    end_each(sched, false, is_new, take_from_queue, SIZE_MAX);
    /* A tasklet that catches TaskletExit and goes on gets it again, but not for ever. */
    end_each(sched, true, is_to_end, kill_now, 3 * count_begun(sched) + 1000);
}

void
plus_schedulers_end(void)
{
    plus_switching_end();
    if (plus_scheduler_own == NULL) {
        return;
    }
    kill_all(plus_scheduler_own);
    end_each(plus_scheduler_own, true, is_to_end, plus_tasklet_abandon, SIZE_MAX);
}

static void
drop_runnables(struct plus_scheduler *sched)
{
    while (sched->current != NULL) {
        take_from_queue(sched->current);
    }
}

static void
unlink_scheduler(struct plus_scheduler *sched)
{
    if (sched->link == NULL) {
        return; /* make() failed before it was linked */
    }
    *sched->link = sched->next_scheduler;
    if (sched->next_scheduler != NULL) {
        sched->next_scheduler->link = sched->link;
    }
    sched->link = NULL;
}

/* The thread state is being cleared: by its own thread at its end, or by another thread when the interpreter ends or
 * after a fork; then the C stacks cannot be run and are left as they are. */
static void
scheduler_end(PyObject *capsule)
{
    struct plus_scheduler *sched = PyCapsule_GetPointer(capsule, dict_key);

    if (sched == plus_scheduler_own) {
        PyThreadState *tstate = sched->tstate;
        bool cleared = plus_pystate_is_cleared(tstate);

        if (!plus_compat_is_finalizing()) {
            kill_all(sched);
        }
        if (cleared) {
            /* PyThreadState_Clear() has been here already: an object that an event loop has just stored in it, to note
             * that it runs, would not be freed. */
            plus_pystate_clear_again(tstate);
        }
        plus_scheduler_own = NULL;
        ended_id = PyThreadState_GetID(sched->tstate);
        plus_overflow_thread_end(sched->signal_stack);
    }
    unlink_scheduler(sched);
    plus_watchdog_end(sched);
    if (sched->turn.holds_gil) {
        plus_scheduler_hold_gil(sched, false);
    }
    sched->tstate = NULL; /* tasklets that are freed from now on are not asked to run */
    drop_runnables(sched);
    if (!plus_compat_is_finalizing()) {
        if (sched->main != NULL && sched->main->blocked) {
            take_from_channel(sched->main);
        }
        end_each(sched, true, is_blocked, take_from_channel, SIZE_MAX);
    }
    Py_CLEAR(sched->main);
    plus_hub_end(sched);
    plus_scheduler_release(sched);
}

/* ---- the beginning ---------------------------------------------------------------------------- */

static int
tie_to_thread(struct plus_scheduler *sched)
{
    PyObject *dict = PyThreadState_GetDict();
    PyObject *capsule = PyCapsule_New(sched, dict_key, NULL);
    int rc = dict != NULL && capsule != NULL ? PyDict_SetItemString(dict, dict_key, capsule) : -1;

    if (rc == 0) {
        (void)PyCapsule_SetDestructor(capsule, scheduler_end);
        sched->references++;
    }
    else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    Py_XDECREF(capsule);
    return rc;
}

static struct plus_scheduler *
make(void)
{
    if (PyThreadState_GetID(PyThreadState_Get()) == ended_id) {
        PyErr_SetString(PyExc_RuntimeError, "the thread is ending: it no longer has tasklets");
        return NULL;
    }
    struct plus_scheduler *sched = calloc(1, sizeof(*sched));

    if (sched == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    sched->references = 1;
    sched->tstate = PyThreadState_Get();
    plus_own_stacks_init(sched);
    plus_waitq_init(&sched->idle.line);
    sched->main = sched->running = plus_tasklet_make_main(sched);
    if (sched->main == NULL) {
        plus_scheduler_release(sched);
        return NULL;
    }
    plus_queue_insert((struct plus_tasklet *)Py_NewRef(sched->main));
    if (tie_to_thread(sched) < 0) {
        drop_runnables(sched);
        Py_CLEAR(sched->main);
        plus_scheduler_release(sched);
        return NULL;
    }
    plus_scheduler_release(sched); /* the thread's dict has it */
    sched->next_scheduler = plus_schedulers;
    sched->link = &plus_schedulers;
    if (plus_schedulers != NULL) {
        plus_schedulers->link = &sched->next_scheduler;
    }
    plus_schedulers = sched;
    plus_scheduler_own = sched;
    sched->signal_stack = plus_overflow_thread_begin();
    plus_overflow_install();
    return sched;
}

void
plus_threads_prepare(void)
{
    plus_above = (struct plus_above){
        .make = make,
        .look_soon = plus_look_soon,
        .wait = plus_outside_wait,
        .deadlock = plus_outside_deadlock,
        .wake = plus_outside_wake,
        .switching = plus_watchdog_switching,
        .entering = plus_watchdog_entering,
        .event = plus_watchdog_event,
        .expire = plus_watchdog_expire,
        .vacate = plus_vacate,
    };
}
