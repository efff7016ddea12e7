/* Taking a parked tasklet off its C stack.
 *
 *     parked, on a C stack --vacate--> a snapshot, no C stack --it runs--> on any free C stack
 *
 * A million parked tasklets cost pages: each touches a page of its C stack, which the kernel makes at the first write.
 * Frames alone take a tenth of that, and the C stack, with its page, goes to the next tasklet.  So vacating is tried
 * first; cold.c copies the used part if it fails.
 *
 *   1. The chain is captured as for a pickle (frame_capture.h); a tasklet that cannot be captured is left to cold.c.
 *      So is one with a frame object, which other code may hold; with a generator, which other code reaches; with
 *      tracers, or while a monitoring tool asks for events: they would see the next step.  Python code may run until
 *      here.
 *   2. The frames are told to handle nothing (frame_leave.h), and the tasklet is switched to, with an exception.  It
 *      leaves all of its functions, and tasklet_entry(), told by turn.leaving, switches back here.  Nothing that a
 *      program could notice is freed on the way: the snapshot holds all of it.  Switching is refused as in a callback.
 *   3. The C stack is given back, and the tasklet calls the snapshot when its turn comes.  It stays in its channel's
 *      queue meanwhile: senders find it as before, and kill() and throw() reach it.
 *
 * If a program asks for its frame object, the tasklet is put on a C stack again (plus_seat), parked in the call that
 * gives the snapshot its value.
 *
 * A vacated tasklet still counts as begun: as garbage it gets TaskletExit, and so does one that its thread leaves
 * behind. For this, and for reports, vacated tasklets are in a list.
 *
 * Only the thread's own tasklets are vacated: another thread's C stack cannot be switched to.
 */
#include "vacating.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"
#include "../../_interp/saved_frames/frame_leave.h"
#include "../core/bomb.h"
#include "../core/cold.h"
#include "../core/own_stack.h"
#include "../scheduling/snapshot.h"
#include "../scheduling/switching.h"
#include "../tracing/instrument.h"
#include "capturing.h"

static PyObject *order; /* the bomb that makes tasklets leave; kept for good */

/* Parked tasklets, each with a reference. */
struct parked {
    struct plus_tasklet **all;
    size_t count, room, most;
    uint64_t now_ns, parked_ns;
};

static bool
gather(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;
    struct parked *parked = arg;

    if (plus_is_parked(task) && task->cold == NULL && plus_is_in_use(task) &&
        parked->count < parked->room && plus_waits_long(task, parked->now_ns, parked->parked_ns)) {
        parked->all[parked->count++] = (struct plus_tasklet *)Py_NewRef(task);
    }
    return parked->count >= parked->most;
}

/* Whether no other code would run on the way, or see it. */
static bool
is_plain(const struct plus_tasklet *task)
{
    const struct plus_pystate *state = &task->fiber.state;

    return plus_is_parked(task) && task->cold == NULL && plus_is_in_use(task) && !task->atomic &&
           !task->awaits && task->pending_irq == 0 && state->tracefunc == NULL &&
           state->profilefunc == NULL && plus_capturing_why_not(task) == NULL;
}

/* Returns the operands of the call in which the tasklet waits, and the channel that it waits in. */
static PyObject *
operands_of(struct plus_tasklet *task, const struct plus_frames *frames)
{
    PyObject *operands = plus_frames_call_operands(frames), *both = NULL;

    if (operands != NULL) {
        both = PyTuple_Pack(2, operands, task->blocked ? (PyObject *)task->channel : Py_None);
        Py_DECREF(operands);
    }
    return both;
}

/* Does step 1; returns NULL without an exception. */
static PyObject *
take_snapshot(struct plus_tasklet *task, const struct plus_frames *frames)
{
    PyObject *snapshot = NULL, *captured = NULL;

    if (plus_frames_can_leave(frames)) {
        captured = plus_capturing_frames(task, PyExc_ValueError);
    }
    PyObject *operands = captured == NULL ? NULL : operands_of(task, frames);

    if (operands != NULL) {
        snapshot = plus_snapshot_make(captured, plus_pystate_handled(&task->fiber.state));
    }
    if (snapshot != NULL) {
        plus_snapshot_keep(snapshot, Py_NewRef(operands), Py_NewRef(task->func));
    }
    Py_XDECREF(operands);
    Py_XDECREF(captured);
    PyErr_Clear();
    return snapshot;
}

/* Switches to the tasklet until it switches back; keeps the leftovers of the last switch for the running tasklet. */
static void
visit(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    struct plus_turn *turn = &sched->turn;
    struct plus_tasklet *finished = turn->finished;
    PyObject *after = turn->after_switch;

    turn->finished = NULL;
    turn->after_switch = NULL;
    plus_fiber_switch(sched->tstate, &sched->running->fiber, &task->fiber);
    turn->finished = finished;
    turn->after_switch = after;
}

/* Does step 2. */
static void
leave(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    PyObject *value = task->tempval;

    sched->turn.leaving = task;
    task->tempval = Py_NewRef(order);
    /* A call whose beginning was reported would report its end, even if no tool asks for that any more. */
    task->fiber.state.tracing++;
    visit(sched, task);
    plus_set_value(task, value);
    sched->turn.leaving = NULL;
}

/* Does step 3. */
static void
settle(struct plus_scheduler *sched, struct plus_tasklet *task, PyObject *snapshot)
{
    plus_pystate_left(&task->fiber.state);
    task->fiber.sp = NULL;
    plus_stack_give(&sched->stacks, task->stack);
    task->stack = NULL;
    task->started = false;
    Py_SETREF(task->func, snapshot); /* the snapshot holds the old one */
    plus_vacated_note(task);
}

static bool
vacate(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    if (!is_plain(task)) {
        return false;
    }
    struct plus_frames frames = plus_tasklet_frames(task);
    PyObject *snapshot = take_snapshot(task, &frames);

    /* Python code may have run meanwhile. */
    if (snapshot != NULL && !(is_plain(task) && plus_frames_can_leave(&frames))) {
        Py_CLEAR(snapshot);
    }
    if (snapshot == NULL) {
        return false;
    }
    plus_frames_leave(&frames);
    leave(sched, task);
    settle(sched, task, snapshot);
    return true;
}

static bool
may_vacate(struct plus_scheduler *sched)
{
    if (sched->running->uncalled || sched->turn.trap > 0 || sched->watch.on ||
        plus_capturing_refused(PyExc_ValueError) || !plus_frames_are_left()) {
        return false;
    }
#if PLUS_INSTRUMENTED
    plus_instrument_if_changed(sched);
    if (plus_instrumentation_is_asked()) {
        return false;
    }
#endif
    if (order == NULL) {
        PyObject *exception = PyObject_CallNoArgs(PyExc_BaseException);

        order = exception == NULL
                    ? NULL
                    : plus_bomb_from_triple((PyObject *)Py_TYPE(exception), exception, NULL);
        Py_XDECREF(exception);
    }
    return order != NULL;
}

/* The state before hold_still(). */
struct before {
    bool in_callback;
    int collects;
};

/* Keeps callbacks from switching, and finalisers from running: they would run on the frames of one tasklet while
 * `running` is another. */
static struct before
hold_still(struct plus_scheduler *sched)
{
    struct before before = {sched->in_callback, PyGC_Disable()};

    sched->in_callback = true;
    return before;
}

static void
move_again(struct plus_scheduler *sched, struct before before)
{
    sched->in_callback = before.in_callback;
    if (before.collects) {
        PyGC_Enable();
    }
}

void
plus_seat(struct plus_tasklet *task)
{
    struct plus_scheduler *sched = task->sched;

    if (!task->vacated || sched != plus_scheduler_own || sched->in_callback) {
        return;
    }
    Py_INCREF(task);
    struct before before = hold_still(sched);

    if (plus_make_ready(task) == 0 && task->vacated) { /* its warning may have run code */
        plus_place(task);
        sched->turn.seated = task;
        visit(sched, task);
        sched->turn.seated = NULL;
    }
    PyErr_Clear();
    move_again(sched, before);
    Py_DECREF(task);
}

size_t
plus_vacate(struct plus_scheduler *sched, uint64_t parked_ns, size_t most)
{
    struct plus_raised raised = plus_raised_take();
    struct parked parked = {.room = sched->stacks.in_use,
                            .most = most,
                            .now_ns = plus_now_coarse_ns(),
                            .parked_ns = parked_ns};
    size_t count = 0;

    if (most < SIZE_MAX && parked.room > 2 * most) {
        parked.room = 2 * most;
    }
    struct before before = hold_still(sched);

    if (parked.room > 0 && may_vacate(sched)) {
        parked.all = malloc(parked.room * sizeof(struct plus_tasklet *));
    }
    if (parked.all != NULL) {
        (void)plus_stacks_sweep(&sched->stacks, gather, &parked);
        for (size_t i = 0; i < parked.count; i++) {
            count += vacate(sched, parked.all[i]);
        }
    }
    move_again(sched, before);
    if (parked.all != NULL) {
        for (size_t i = 0; i < parked.count; i++) {
            Py_DECREF(parked.all[i]);
        }
        free(parked.all);
    }
    PyErr_Clear();
    plus_raised_put(raised);
    return count;
}
