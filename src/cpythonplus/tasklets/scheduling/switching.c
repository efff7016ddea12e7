/* Switching from one tasklet of a thread to another, and the end of a tasklet.
 *
 * plus_schedule(prev, next) is the only way out of a tasklet that goes on later.  The caller has put prev where it
 * waits (the run queue, a channel, nowhere) and the value for `next` into next->tempval.  Then:
 *
 *   1. Every few switches, timers and descriptors are checked.  If nothing is runnable, outside.c waits; if nothing can
 *      become runnable, that is a deadlock, and prev or the innermost caller of run() gets it as an exception.
 *   2. Everything that can refuse the switch does so: -1 with an exception, nothing has been changed, the caller takes
 *      prev back.
 *   3. `next` is put into the run queue.  From here on nothing fails.
 *   4. The watchdog may name another tasklet.  The schedule callback runs Python code, during which other threads run
 *      too.  So the next tasklet is held by a reference, marked as `coming`, and put back if it was removed meanwhile.
 *   5. No Python code any more: a stack for `next` if it has none, `current` and `running`, the switch (fiber.c).
 *   6. When prev runs again: leftovers of the switch to it (a C stack, references) are released, the GIL is kept or not
 *      as `atomic` says, and tempval is the result, or is raised if it is a bomb.
 *
 * A reference that must not end before the switch, because its destructor would run in a tasklet that has left already,
 * goes to `after_switch` and ends in step 6 of the next tasklet.
 *
 * A tasklet ends in tasklet_entry(), on its own C stack, which it cannot free from there; so it is `finished` until
 * step
 * 6.  If its successor has not begun, the successor takes over the C stack and runs in the same loop: spawning and
 * ending a thousand tasklets costs no switch of stacks.  Rejected: a scheduler tasklet to which every tasklet returns;
 * each change of tasklets would be two switches.
 *
 * All functions are called with the GIL held.
 */
/* The functions that switch have no buffers, and the stack protector's check would be a tenth of a switch. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC optimize("no-stack-protector")
#endif

#include "switching.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../../gil/binding.h"
#include "../core/bomb.h"
#include "../core/cold.h"
#include "../core/own_stack.h"
#include "../stacks/switch.h"
#include "../tracing/instrument.h"
#include "../tracing/interrupts.h"
#include "snapshot.h"

PyObject *plus_error_handler, *plus_schedule_hook;

/* ---- refusals --------------------------------------------------------------------------------- */

static bool at_end; /* the interpreter ends: the tasklets of its main thread were killed */

void
plus_switching_end(void)
{
    at_end = true;
}

static bool
refuse_here(const struct plus_scheduler *sched)
{
    if (sched->in_callback) {
        PyErr_SetString(PyExc_RuntimeError,
                        sched->in_handler
                            ? "a signal handler cannot switch tasklets while its whole thread waits"
                            : "Recursive scheduler call due to callbacks!");
        return true;
    }
    return false;
}

bool
plus_refuse_leaving(const struct plus_scheduler *sched)
{
    if (!plus_is_runnable(sched->running)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a finaliser cannot switch while its tasklet is being switched away");
        return true;
    }
    return false;
}

bool
plus_refuse_in_callback(const struct plus_scheduler *sched)
{
    return refuse_here(sched) || plus_refuse_leaving(sched);
}

/* ---- switching -------------------------------------------------------------------------------- */

/* Calls the schedule callback; its exceptions go to sys.unraisablehook. */
static void
call_schedule_hook(struct plus_scheduler *sched, struct plus_tasklet *prev,
                   struct plus_tasklet *next)
{
    PyObject *after = sched->turn.after_switch;
    PyObject *hook = Py_NewRef(plus_schedule_hook);

    if (sched->in_callback) {
        Py_FatalError("Recursive scheduler call due to callbacks!");
    }
    sched->turn.after_switch = NULL;
    sched->in_callback = true;
    sched->turn.coming = next;
    if (prev != NULL && plus_is_runnable(prev)) {
        sched->current = prev;
    }
    struct plus_raised raised = plus_raised_take();
    plus_drop_result(PyObject_CallFunctionObjArgs(hook, prev != NULL ? (PyObject *)prev : Py_None,
                                                  next != NULL ? (PyObject *)next : Py_None, NULL),
                     hook);
    plus_raised_put(raised);
    sched->in_callback = false;
    sched->turn.coming = NULL;
    sched->turn.after_switch = after;
    Py_DECREF(hook);
}

static void
after_switch(struct plus_scheduler *sched)
{
    struct plus_tasklet *finished = sched->turn.finished;
    PyObject *object = sched->turn.after_switch;

    sched->turn.finished = NULL;
    sched->turn.after_switch = NULL;
    if (finished != NULL) {
        if (finished->stack != NULL) {
            plus_stack_give(&sched->stacks, finished->stack);
            finished->stack = NULL;
        }
        Py_DECREF(finished);
    }
    Py_XDECREF(object);
}

static inline void
settle(struct plus_scheduler *sched)
{
    if (sched->turn.finished != NULL || sched->turn.after_switch != NULL) {
        after_switch(sched);
    }
    plus_follow_atomic(sched);
}

/* Entering or leaving the atomic section may let other threads run; the current exception is kept. */
void
plus_scheduler_hold_gil(struct plus_scheduler *sched, bool hold)
{
    struct plus_raised raised = plus_raised_take();
    sched->turn.holds_gil = hold;
    if (hold) {
        /* If the GIL cannot be held here, or without memory, only the watchdog is kept away. */
        sched->turn.in_section = plus_atomic_hold();
    }
    else if (sched->turn.in_section) {
        plus_atomic_let_go();
    }
    plus_raised_put(raised);
}

/* Called once the frames of `task` are rebuilt.  If vacating.c only wanted a C stack for it, the tasklet is parked here
 * and gets its value later. */
static PyObject *
receive(struct plus_tasklet *task, PyObject *value)
{
    struct plus_scheduler *sched = task->sched;

    if (sched->turn.seated == task) {
        sched->turn.seated = NULL;
        plus_set_value(task, value);
        task->uncalled = true; /* the call has no operands */
        plus_fiber_switch(sched->tstate, &task->fiber, &sched->running->fiber);
        task->uncalled = false;
        plus_instrument_if_changed(sched);
        value = plus_claim_value(task);
        settle(sched);
    }
    return value;
}

/* Runs the function of a new tasklet, once.  Gives the result, or NULL with an exception. */
static PyObject *
run_function(struct plus_tasklet *task)
{
    PyObject *value = plus_claim_value(task);
    PyObject *result = NULL;

    plus_vacated_forget(task);
    task->started = true;
    if (task->sched->watch.on) {
        plus_interrupts_begin(task->sched);
    }
    settle(task->sched);
    if (plus_is_snapshot(task->func)) { /* the snapshot goes on, and takes the value or the bomb */
        result = plus_snapshot_run(task->func, value, receive, task);
    }
    else if (plus_is_bomb(value)) { /* killed before it began */
        (void)plus_bomb_explode(value);
    }
    else if (task->func == NULL) { /* made by a pickle and not completed */
        Py_DECREF(value);
        PyErr_SetString(PyExc_RuntimeError, "the tasklet was not bound to a function");
    }
    else {
        Py_DECREF(value);
        /* func, args and kwargs stay in the tasklet, where the garbage collector sees them. */
        result = PyObject_Call(task->func, task->args, task->kwargs);
    }
    if (task->sched->turn.leaving == task) {
        return NULL; /* the tasklet goes on later and needs func, args and kwargs */
    }
    Py_CLEAR(task->func);
    Py_CLEAR(task->args);
    Py_CLEAR(task->kwargs);
    return result;
}

static struct plus_tasklet *
wakes_up(struct plus_scheduler *sched)
{
    return sched->runs.count > 0 ? sched->runs.callers[sched->runs.count - 1] : sched->main;
}

/* Turns the exception that leaves a tasklet into a bomb for main; NULL if the exception was handled. */
static PyObject *
bomb_for_main(void)
{
    if (PyErr_ExceptionMatches(plus_tasklet_exit)) {
        PyErr_Clear();
        return NULL;
    }
    if (plus_error_handler != NULL) {
        PyObject *value = plus_compat_take_exception();
        PyObject *traceback = PyException_GetTraceback(value);
        PyObject *result =
            PyObject_CallFunctionObjArgs(plus_error_handler, Py_TYPE(value), value,
                                         traceback != NULL ? traceback : Py_None, NULL);

        Py_DECREF(value);
        Py_XDECREF(traceback);
        if (result != NULL) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return plus_bomb_from_error();
}

/* Returns the tasklet that runs after one that has ended.  bomb: the exception with which it ended (the reference is
 * taken), or NULL. */
static struct plus_tasklet *
successor(struct plus_scheduler *sched, PyObject *bomb)
{
    struct plus_tasklet *wakeup = wakes_up(sched);

    if (bomb == NULL && sched->current == NULL && (wakeup->blocked || plus_outside(sched))) {
        int found = plus_above.wait(sched);

        if (found < 0) {
            bomb = plus_bomb_from_error();
        }
        else if (found == 0) {
            bomb = plus_above.deadlock(
                sched, wakeup->blocked < 0
                           ? "the main tasklet is receiving without a sender available."
                           : "the main tasklet is sending without a receiver available.");
        }
    }
    if (bomb != NULL) {
        plus_set_value(wakeup, bomb);
        return wakeup;
    }
    return sched->current != NULL ? sched->current : wakeup;
}

/* Puts `next` into the run queue if it is in no queue or in a channel's. */
static void
make_runnable(struct plus_tasklet *next)
{
    if (next->blocked) {
        plus_channel_remove(next);
        plus_queue_insert(next);
    }
    else if (next->next == NULL) {
        plus_queue_insert((struct plus_tasklet *)Py_NewRef(next));
    }
}

static void
tasklet_entry(void);

/* Gives a tasklet that has no saved stack pointer a place on its stack to go on from. */
static inline void
place(struct plus_tasklet *task)
{
    if (task->fiber.sp != NULL) {
        return;
    }
    if (task->cold != NULL) {
        plus_tasklet_warm(task);
    }
    else {
        plus_fiber_fresh(&task->fiber, task->sched->tstate, task->stack);
        task->fiber.sp = plus_switch_prepare(task->stack->top, tasklet_entry);
    }
}

void
plus_place(struct plus_tasklet *task)
{
    place(task);
}

/* Takes a reference to the next tasklet.  Puts it back if the callback, or another thread meanwhile, removed it. */
static inline void
insist_on(struct plus_tasklet *next, const struct plus_tasklet *prev)
{
    if (!plus_is_floating(next)) {
        Py_DECREF(next);
    }
    else if (plus_is_runnable(prev)) {
        plus_queue_insert_next(next);
    }
    else {
        plus_queue_insert(next);
    }
}

/* Ends `task`, which is current; its result or exception has been dealt with.  Returns only if the next tasklet is new
 * and has taken over this C stack. */
static void
leave(struct plus_scheduler *sched, struct plus_tasklet *task, struct plus_tasklet *next)
{
    Py_INCREF(next);
    if (plus_schedule_hook != NULL) {
        call_schedule_hook(sched, task, next);
        plus_pystate_end(sched->tstate); /* debuggers' hooks set tracers */
    }
    plus_pystate_drop_context(sched->tstate); /* a signal handler may have set one again */
    insist_on(next, task);
    if (sched->watch.on) {
        plus_above.entering(sched, next);
    }
    sched->turn.finished = task;
    sched->current = sched->running = next;
    if (!next->started && next->stack == NULL) {
        next->stack = task->stack;
        next->stack->owner = next;
        task->stack = NULL;
        plus_fiber_fresh(&next->fiber, sched->tstate, next->stack);
        plus_pystate_load(sched->tstate, &next->fiber.state);
        return;
    }
    place(next);
    plus_fiber_leave(sched->tstate, &next->fiber);
}

static void
tasklet_entry(void)
{
    plus_fiber_arrived();
    for (;;) {
        struct plus_scheduler *sched = plus_scheduler_own;
        struct plus_tasklet *task =
            sched->turn.seated != NULL ? sched->turn.seated : sched->running;
        PyObject *result = run_function(task);

        if (sched->turn.leaving == task) {
            PyErr_Clear();
            task->fiber.state.context = plus_pystate_exchange_context(sched->tstate, NULL);
            plus_fiber_leave(sched->tstate, &sched->running->fiber);
        }
        PyObject *bomb = result == NULL ? bomb_for_main() : NULL;

        Py_XDECREF(result);
        plus_pystate_end(sched->tstate); /* may run destructors: `task` is still current for them */
        plus_queue_remove(task);         /* its reference goes to `finished` */
        /* Signal handlers and other threads may run while a successor is waited for; they must not insert `task`. */
        task->alive = false;
        struct plus_tasklet *next = successor(sched, bomb);

        make_runnable(next);
        if (sched->watch.on) {
            next = plus_above.switching(sched, task, next);
        }
        leave(sched, task, next);
    }
}

static void
switch_now(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
           PyObject **result)
{
    if (sched->watch.on) {
        next = plus_above.switching(sched, prev, next);
    }
    if (prev == next) {
        sched->current = next;
    }
    else {
        if (plus_schedule_hook != NULL) {
            Py_INCREF(next);
            call_schedule_hook(sched, prev, next);
            insist_on(next, prev);
            if (sched->watch.on) {
                plus_above.entering(sched, next);
            }
        }
        place(next);
        sched->current = sched->running = next;
        plus_fiber_switch(sched->tstate, &prev->fiber, &next->fiber);
        plus_instrument_if_changed(sched);
    }
    PyObject *value = plus_claim_value(prev);

    settle(sched); /* may run Python code, so `value` was claimed first */
    *result = plus_value_or_raise(value);
}

static int
schedule_in_other_thread(struct plus_tasklet *prev, struct plus_tasklet *next, PyObject **result)
{
    if (next->sched->tstate == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet has no thread");
        return -1;
    }
    make_runnable(next);
    plus_scheduler_wake(next->sched);
    *result = plus_value_or_raise(plus_claim_value(prev));
    return 0;
}

/* Called if nothing is runnable: switches to the caller of run(), waits for other threads, or reports a deadlock. */
static int
schedule_nobody(struct plus_scheduler *sched, struct plus_tasklet *prev, PyObject **result)
{
    struct plus_tasklet *wakeup = wakes_up(sched);
    bool revive = plus_is_floating(wakeup) && !sched->runs.threadblock && !plus_outside(sched);
    int found = revive ? 0 : plus_above.wait(sched);

    if (found < 0) {
        if (wakeup == prev) {
            return -1;
        }
        /* For the caller of run(); prev only was the last to wait. */
        plus_set_value(wakeup, plus_bomb_from_error());
        return plus_schedule(sched, prev, wakeup, result);
    }
    if (found > 0) {
        return plus_schedule(sched, prev, sched->current, result);
    }
    if (plus_is_floating(wakeup)) {
        if (wakeup != prev && plus_is_bomb(prev->tempval)) {
            plus_set_value(wakeup, Py_NewRef(prev->tempval));
        }
        return plus_schedule(sched, prev, wakeup, result);
    }
    PyObject *bomb =
        plus_above.deadlock(sched, "Deadlock: the last runnable tasklet cannot be blocked.");

    if (bomb == NULL) {
        return plus_schedule(sched, prev, sched->current, result);
    }
    plus_set_value(prev, bomb);
    return plus_schedule(sched, prev, prev, result);
}

/* Gives a tasklet that is to begin a C stack.  Meanwhile a warning and finalisers run code, so the tasklet is marked as
 * `coming`, and switching is refused. */
static int
make_ready(struct plus_scheduler *sched, struct plus_tasklet *next)
{
    Py_INCREF(next);
    sched->in_callback = true;
    sched->turn.coming = next;
    int result = plus_make_ready(next);

    sched->in_callback = false;
    sched->turn.coming = NULL;
    if (result == 0) {
        make_runnable(next); /* it may have been removed */
    }
    Py_DECREF(next);
    return result;
}

int
plus_schedule(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
              PyObject **result)
{
    *result = NULL;
    if ((plus_outside(sched) || plus_loop_waits(sched)) && sched->loop.look_in-- == 0) {
        plus_above.look_soon(sched);
        next = next != NULL ? next : sched->current;
    }
    if (next == NULL) {
        return schedule_nobody(sched, prev, result);
    }
    if (next->sched != sched && next != prev) {
        return schedule_in_other_thread(prev, next, result);
    }
    if (next != prev) {
        if (sched->turn.trap) {
            PyErr_SetString(PyExc_RuntimeError, "switch_trap");
            return -1;
        }
        /* Modules, thread data and contexts are being torn down in no order, so no parked tasklet may be resumed. */
        if (at_end && plus_compat_is_finalizing()) {
            PyErr_SetString(plus_compat_finalization_error(),
                            "cannot switch tasklets at interpreter finalization");
            return -1;
        }
        if (refuse_here(sched)) {
            return -1;
        }
        if (!next->started && next->stack == NULL && make_ready(sched, next) < 0) {
            return -1;
        }
    }
    make_runnable(next);
    if (sched->loop.due) {
        /* Put the hub, which lets asyncio's loop run, right after `next`, which is about to run. */
        struct plus_tasklet *hub = sched->loop.hub;

        sched->loop.due = false;
        if (hub != NULL && hub != next && hub != sched->running && plus_is_runnable(hub)) {
            plus_queue_remove(hub);
            plus_queue_link(hub, next->next);
            sched->runcount++;
        }
    }
    switch_now(sched, prev, next, result);
    return 0;
}

PyObject *
plus_schedule_current(struct plus_scheduler *sched, PyObject *value, bool remove)
{
    struct plus_tasklet *prev = sched->running;
    struct plus_tasklet *next = prev->next;
    PyObject *result, *old;

    if (plus_refuse_in_callback(sched) || plus_raise_due(prev)) {
        return NULL;
    }
    old = prev->tempval;
    prev->tempval = Py_NewRef(value);
    if (remove) {
        prev->parked_ns = plus_now_coarse_ns();
        plus_queue_remove(prev);
        next = sched->current;
        /* Held until the switch is done: by then it may be the last reference. */
        sched->turn.after_switch = (PyObject *)prev;
    }
    if (plus_schedule(sched, prev, next, &result) < 0) {
        plus_set_value(prev, old);
        if (remove) {
            sched->turn.after_switch = NULL;
            plus_queue_take_back(prev);
        }
        return NULL;
    }
    Py_DECREF(old);
    return result;
}
