/* The beginning and the end of a thread's scheduler, and of all tasklets in it.
 *
 * It begins with the first call that needs one, and is tied to the thread by a capsule in the dict of the thread state.
 * The interpreter clears that dict when the thread ends, when it ends itself, and after a fork for each thread that
 * is gone; the capsule's destructor is the only end.  Who calls it decides what can be done:
 *
 *   - The thread itself: its tasklets are killed, each on its own C stack, so that their `finally` clauses run.  The
 *     interpreter may have cleared more of the thread state before, and does not come back for what they leave there.
 *   - Another thread, at the interpreter's end or in the child of a fork: the C stacks belong to a thread that cannot
 *     run them.  They are left as they are.  What waits in channels is taken out, as it can receive nothing any more.
 *
 * The thread's end kills in an order that loses nothing: a hub that was given coroutines begins, so that its loop can end
 * them; who is blocked in a channel leaves it, as another thread could still send; who has not begun is dropped; the others
 * get TaskletExit until they end, but not for ever.
 *
 * Tasklets may outlive their thread: each holds a reference to the scheduler's memory.  `tstate` is NULL from then on,
 * which all that would insert or run them asks first.
 *
 * At the interpreter's end (atexit) the main thread's tasklets are killed while everything still works; those that do not
 * end are abandoned, and from then on nothing is switched.
 *
 * All with the GIL held.
 */
#include "thread.h"

#include "hub.h"
#include "outside.h"
#include "overflow.h"
#include "own_stack.h"
#include "switching.h"
#include "tasklet.h"
#include "tasklet_py.h"
#include "vacating.h"
#include "watchdog.h"

/* Of the last thread state here whose scheduler has ended.  Destructors of what else it had run afterwards. */
static _Thread_local uint64_t ended_id;

static const char dict_key[] = "cpythonplus.tasklets";

/* ---- the end ---------------------------------------------------------------------------------- */

static int
find_blocked(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    *(struct plus_tasklet **)arg = task;
    return task->blocked != 0; /* the channel's reference keeps it */
}

static int
find_owner(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    if (task->alive && !task->abandoned && task->sched->running != task && plus_is_in_use(task)) {
        *(struct plus_tasklet **)arg = task;
        return 1;
    }
    return 0;
}

/* The first that has begun and matches; false: there is none. */
static bool
find(struct plus_scheduler *sched, int (*matches)(void *, void *), struct plus_tasklet **found)
{
    bool is = plus_stacks_each(&sched->stacks, matches, found) != 0;

    for (struct plus_tasklet *task = sched->vacated; task != NULL && !is;
         task = task->vacated_next) {
        is = matches(task, found) != 0;
    }
    return is;
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

/* The first runnable one that has not begun, or NULL. */
static struct plus_tasklet *
find_new_one(struct plus_scheduler *sched)
{
    struct plus_tasklet *task = sched->current;

    for (int i = 0; i < sched->runcount; i++, task = task->next) {
        if (!task->started && !task->vacated) {
            return task;
        }
    }
    return NULL;
}

static void
kill_all(struct plus_scheduler *sched)
{
    struct plus_tasklet *hub = sched->loop.own_hub, *task;

    /* Coroutines may have been given to a hub that has not begun: as its loop ends, so do they. */
    if (hub != NULL && !hub->started && plus_is_runnable(hub)) {
        Py_INCREF(hub); /* it is nobody's once it has ended */
        plus_drop_result(plus_tasklet_run(hub, false), (PyObject *)hub);
        Py_DECREF(hub);
    }
    /* Other threads go on meanwhile: what they sent to one that is blocked still, and about to be ended, would be
     * lost. */
    while (find(sched, find_blocked, &task)) {
        Py_INCREF(task);
        PyObject *result = plus_tasklet_kill(task, true);

        if (result == NULL) {
            PyErr_Clear(); /* no memory */
        }
        if (task->blocked) {
            plus_channel_remove(task);
            plus_queue_insert(task);
        }
        Py_XDECREF(result);
        Py_DECREF(task);
    }
    /* Each end goes on with the queue; nothing is to begin now. */
    while ((task = find_new_one(sched)) != NULL) {
        plus_queue_remove(task);
        Py_DECREF(task);
    }
    /* One that catches TaskletExit and goes on is asked again, but not for ever. */
    size_t attempts = 3 * count_begun(sched) + 100;

    while (attempts-- > 0 && find(sched, find_owner, &task)) {
        Py_INCREF(task);
        plus_drop_result(plus_tasklet_kill(task, false), (PyObject *)task);
        Py_DECREF(task);
    }
}

void
plus_schedulers_end(void)
{
    plus_switching_end();
    if (plus_scheduler_own == NULL) {
        return;
    }
    kill_all(plus_scheduler_own);
    for (struct plus_tasklet *task; find(plus_scheduler_own, find_owner, &task);) {
        plus_tasklet_abandon(task);
    }
}

static void
drop_runnables(struct plus_scheduler *sched)
{
    while (sched->current != NULL) {
        struct plus_tasklet *task = sched->current;

        plus_queue_remove(task);
        Py_DECREF(task);
    }
}

/* Nobody is to meet those that cannot run any more in a channel: what is sent to them would be lost. */
static void
unblock_all(struct plus_scheduler *sched)
{
    struct plus_tasklet *task = sched->main;

    while ((task != NULL && task->blocked) || find(sched, find_blocked, &task)) {
        plus_channel_remove(task);
        Py_DECREF(task);
        task = NULL;
    }
}

/* The thread state is being cleared: by its own thread at its end, or by another one when the interpreter
 * ends or after a fork; then the C stacks cannot be run and are left as they are. */
static void
scheduler_end(PyObject *capsule)
{
    struct plus_scheduler *sched = PyCapsule_GetPointer(capsule, dict_key);
    struct plus_scheduler **link = &plus_schedulers;

    if (sched == plus_scheduler_own) {
        PyThreadState *tstate = sched->tstate;
        bool cleared = plus_pystate_is_cleared(tstate);

        if (!plus_compat_is_finalizing()) {
            kill_all(sched);
        }
        if (cleared) {
            /* PyThreadState_Clear() has been here: one that an event loop made just now, to say that
             * it runs, nobody else would free. */
            plus_pystate_clear_again(tstate);
        }
        plus_scheduler_own = NULL;
        ended_id = PyThreadState_GetID(sched->tstate);
        plus_overflow_thread_end(sched->signal_stack);
    }
    while (*link != NULL && *link != sched) {
        link = &(*link)->next_scheduler;
    }
    if (*link == sched) {
        *link = sched->next_scheduler;
    }
    plus_watchdog_end(sched);
    if (sched->turn.holds_gil) {
        plus_scheduler_hold_gil(sched, false);
    }
    sched->tstate = NULL; /* what comes to its end now is not asked to run */
    drop_runnables(sched);
    if (!plus_compat_is_finalizing()) {
        unblock_all(sched);
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
