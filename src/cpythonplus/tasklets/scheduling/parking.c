/* Parking tasklets, and ending their waits.
 *
 * A wait, of the tasklet that runs, in plus_park():
 *
 *   1. Everything that can refuse the wait comes first: a callback, an exception that is due, no memory for its timer.
 *      Until then nothing is changed.
 *   2. The tasklet leaves the run queue for the wait queue, as PARKED, and its timer goes into the heap.  From here on
 *      code that ends the wait needs only the tasklet.
 *   3. asyncio's running loop is set aside, and another tasklet runs, or the thread waits.
 *   4. When the tasklet runs again, `parked` says how the wait ended: WOKEN (plus_unpark()), TIMED_OUT
 *      (plus_timers_fire()), or still PARKED if kill() or throw() sent an exception.
 *
 * Ending a wait takes three steps, in any thread, without releasing the GIL: plus_channel_remove(), which also drops
 * the timer; the word in `parked`; the run queue.  So a wait ends once, and a lock that was handed over, or a
 * descriptor's edge, goes to exactly one tasklet.  If the thread of that tasklet sleeps, it is woken then.
 *
 * An exception may come after the wait was ended and before the tasklet runs.  `*woken` tells the caller, who must then
 * pass on what the tasklet was given.
 *
 * No Python code runs between the caller's check (the lock is taken, the edge has not come) and step 2: it would let
 * other threads end a wait that has not begun.  Setting the loop aside may call an audit hook, so it comes later, with
 * switches refused as in a callback.  The wait may end during it as at any other moment.
 *
 * The old tempval is kept aside: the only value that the tasklet may be sent meanwhile is an exception.
 *
 * plus_begin_at() does the same for a tasklet that has not begun: its wait has no plus_park() to return to.
 */
#include "parking.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../core/bomb.h"
#include "../core/lists.h"
#include "switching.h"

#include <math.h>
#include <unistd.h>

/* threading.TIMEOUT_MAX; with the clock's time added it still fits in 64 bits by far. */
#define LONGEST_S 9223372036.0

/* How often a wait that may not switch checks whether it is over. */
#define LOOK_US 200

enum { NOT_PARKED, PARKED, WOKEN, TIMED_OUT };

/* Functions of asyncio and sys that are written in C: no signal handler runs between them, whose exception would leave
 * the thread without its running loop. */
static PyObject *get_loop, *set_loop, *get_hooks, *set_hooks; /* all NULL until asyncio is used */
static PyObject *swap_task;                                   /* from 3.14 on, else NULL */

void
plus_running_loops(PyObject *const *functions)
{
    PyObject **const places[] = {&get_loop, &set_loop, &get_hooks, &set_hooks, &swap_task};

    for (int i = 0; i < 5; i++) {
        Py_XSETREF(*places[i], functions[i] != Py_None ? Py_NewRef(functions[i]) : NULL);
    }
}

static void
change(PyObject *function, PyObject *first, PyObject *second)
{
    plus_drop_result(PyObject_CallFunctionObjArgs(function, first, second, NULL), function);
}

/* Returns (loop, hooks of asynchronous generators, no current task), or NULL with an exception. */
static PyObject *
state_with(PyObject *loop)
{
    PyObject *found = PyObject_CallNoArgs(get_hooks);
    PyObject *hooks = found != NULL ? PySequence_Tuple(found) : NULL;
    PyObject *state = hooks != NULL ? PyTuple_Pack(3, loop, hooks, Py_None) : NULL;

    Py_XDECREF(found);
    Py_XDECREF(hooks);
    return state;
}

PyObject *
plus_running_loop(void)
{
    PyObject *loop = PyObject_CallNoArgs(get_loop);
    PyObject *state = loop != NULL ? state_with(loop) : NULL;

    Py_XDECREF(loop);
    return state;
}

void
plus_set_running_loop(PyObject *state)
{
    change(set_loop, PyTuple_GET_ITEM(state, 0), NULL);
    plus_drop_result(PyObject_Call(set_hooks, PyTuple_GET_ITEM(state, 1), NULL), set_hooks);
}

/* asyncio keeps the running loop per thread, but the tasklets that run while this one waits are not inside it.  From
 * 3.14 on it keeps the current task per thread too.  Returns the argument for put_back(); NULL: there is no loop. */
static PyObject *
set_aside(void)
{
    PyObject *loop = get_loop != NULL ? PyObject_CallNoArgs(get_loop) : NULL, *state = NULL;

    if (loop != NULL && loop != Py_None) {
        state = state_with(loop);
    }
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(get_loop);
    }
    if (state != NULL && swap_task != NULL) {
        PyObject *task = PyObject_CallFunctionObjArgs(swap_task, loop, Py_None, NULL);

        if (task == NULL || PyTuple_SetItem(state, 2, task) < 0) {
            PyErr_WriteUnraisable(swap_task);
        }
    }
    if (state != NULL) {
        change(set_loop, Py_None, NULL);
        change(set_hooks, Py_None, Py_None);
    }
    Py_XDECREF(loop);
    return state;
}

static void
put_back(PyObject *aside)
{
    if (aside == NULL) {
        return;
    }
    struct plus_raised raised = plus_raised_take();

    plus_set_running_loop(aside);
    if (PyTuple_GET_ITEM(aside, 2) != Py_None) {
        change(swap_task, PyTuple_GET_ITEM(aside, 0), PyTuple_GET_ITEM(aside, 2));
    }
    Py_DECREF(aside);
    plus_raised_put(raised);
}

enum plus_parked
plus_park(struct plus_scheduler *sched, struct plus_channel *queue, uint64_t deadline_ns,
          bool again, bool *woken)
{
    struct plus_tasklet *task = sched->running;
    PyObject *result = NULL;

    if (woken != NULL) {
        *woken = false;
    }
    if (task->block_trap) {
        PyErr_SetString(PyExc_RuntimeError, "this tasklet does not like to be blocked.");
        return PLUS_PARKED_RAISED;
    }
    if (plus_refuse_in_callback(sched) || plus_raise_due(task)) {
        return PLUS_PARKED_RAISED;
    }
    if (deadline_ns != PLUS_NO_DEADLINE && !plus_timers_reserve(&sched->parking.timers)) {
        PyErr_NoMemory();
        return PLUS_PARKED_RAISED;
    }
    PyObject *old = plus_claim_value(task);

    task->parked_ns = plus_now_coarse_ns();
    sched->io.eager = NULL;
    plus_queue_remove(task);
    plus_channel_insert(queue, task, -1, again ? queue->head : NULL);
    task->parked = PARKED;
    sched->parking.count++; /* plus_channel_remove() takes it back */
    if (deadline_ns != PLUS_NO_DEADLINE) {
        plus_timers_add(&sched->parking.timers, &task->timer, deadline_ns);
    }
    Py_INCREF(queue); /* for as long as a tasklet is in it */
    sched->in_callback = true;
    PyObject *aside = set_aside();

    sched->in_callback = false;
    if (plus_schedule(sched, task, sched->current, &result) < 0) {
        /* Undo step 2 if switching failed, or if a signal handler raised while the whole thread waited. */
        if (task->blocked) {
            plus_channel_remove(task);
            plus_queue_unremove(task);
        }
        else {
            sched->current = task; /* the wait ended just before */
        }
    }
    unsigned char parked = task->parked;

    task->parked = NOT_PARKED;
    plus_set_value(task, old);
    Py_DECREF(queue);
    put_back(aside);
    if (woken != NULL) {
        *woken = parked == WOKEN;
    }
    if (result == NULL) {
        return PLUS_PARKED_RAISED;
    }
    Py_DECREF(result);
    return parked == TIMED_OUT ? PLUS_PARKED_TIMED_OUT : PLUS_PARKED_WOKEN;
}

int
plus_wait_beside(bool (*is_over)(void *), void *arg, uint64_t deadline_ns)
{
    while (!is_over(arg)) {
        if (plus_now_ns() >= deadline_ns) {
            return 0;
        }
        Py_BEGIN_ALLOW_THREADS
        usleep(LOOK_US);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    return 1;
}

/* Moves the tasklet to the run queue, with the queue's reference. */
static void
end_wait(struct plus_tasklet *task, unsigned char how)
{
    plus_channel_remove(task);
    task->parked = how;
    plus_queue_insert(task);
}

void
plus_unpark(struct plus_tasklet *task)
{
    end_wait(task, WOKEN);
    plus_scheduler_wake(task->sched);
}

void
plus_timers_fire(struct plus_scheduler *sched, uint64_t now_ns)
{
    while (plus_timers_earliest(&sched->parking.timers) <= now_ns) {
        char *timer = (char *)sched->parking.timers.heap[0];

        end_wait((struct plus_tasklet *)(timer - offsetof(struct plus_tasklet, timer)), TIMED_OUT);
    }
}

static bool
have_sleepers(struct plus_scheduler *sched)
{
    if (sched->parking.sleepers == NULL) {
        sched->parking.sleepers = plus_waiters_make("sleeping");
    }
    return sched->parking.sleepers != NULL;
}

int
plus_begin_at(struct plus_tasklet *task, uint64_t deadline_ns)
{
    struct plus_scheduler *sched = task->sched;

    if (!have_sleepers(sched)) {
        return -1;
    }
    if (!plus_timers_reserve(&sched->parking.timers)) {
        PyErr_NoMemory();
        return -1;
    }
    plus_channel_insert(sched->parking.sleepers, task, -1, NULL);
    task->parked = PARKED;
    sched->parking.count++;
    plus_timers_add(&sched->parking.timers, &task->timer, deadline_ns);
    if (plus_timers_earliest(&sched->parking.timers) == deadline_ns) {
        /* A callback of the loop may ask for it, or a signal handler while all tasklets wait for later times. */
        plus_scheduler_wake(sched);
    }
    return 0;
}

static bool
never(void *ignored)
{
    return false;
}

int
plus_sleep_until(struct plus_scheduler *sched, uint64_t deadline_ns)
{
    if (sched->in_handler) {
        return plus_wait_beside(never, NULL, deadline_ns);
    }
    if (deadline_ns <= plus_now_ns()) {
        PyObject *aside = set_aside();
        PyObject *result = plus_schedule_current(sched, Py_None, false);

        put_back(aside);
        Py_XDECREF(result);
        return result != NULL ? 0 : -1;
    }
    if (!have_sleepers(sched)) {
        return -1;
    }
    return plus_park(sched, sched->parking.sleepers, deadline_ns, false, NULL) == PLUS_PARKED_RAISED
               ? -1
               : 0;
}

bool
plus_deadline_after(double seconds, uint64_t *deadline_ns)
{
    if (isnan(seconds)) {
        PyErr_SetString(PyExc_ValueError, "Invalid value NaN (not a number)");
        return false;
    }
    if (seconds > LONGEST_S) {
        PyErr_SetString(PyExc_OverflowError, "timestamp too large to convert to C PyTime_t");
        return false;
    }
    /* Rounded up, so that no wait ends too early. */
    *deadline_ns = plus_now_ns() + (seconds > 0 ? (uint64_t)ceil(seconds * 1e9) : 0);
    return true;
}

bool
plus_deadline_from(PyObject *timeout, uint64_t *deadline_ns)
{
    if (timeout == Py_None) {
        *deadline_ns = PLUS_NO_DEADLINE;
        return true;
    }
    double seconds = PyFloat_AsDouble(timeout);

    return !(seconds == -1.0 && PyErr_Occurred()) && plus_deadline_after(seconds, deadline_ns);
}

/* ---- wait queues of our own ------------------------------------------------------------------- */

static void
waiters_dealloc(PyObject *op)
{
    plus_channel_empty((struct plus_channel *)op);
    PyObject_Free(op);
}

/* The garbage collector does not see them: schedulers and pollers own them, and the tasklets in them. */
PyTypeObject plus_waiters_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.waiters",
    .tp_basicsize = sizeof(struct plus_channel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = waiters_dealloc,
};

struct plus_channel *
plus_waiters_make(const char *waits)
{
    struct plus_channel *queue = PyObject_New(struct plus_channel, &plus_waiters_type);

    if (queue != NULL) {
        PyObject head = queue->ob_base;

        *queue = (struct plus_channel){.ob_base = head, .waits = waits, .descriptor = -1};
    }
    return queue;
}
