/* Taking a parked tasklet off its C stack.
 *
 *     parked, on a C stack --vacate--> a snapshot, no C stack --it runs--> on whichever C stack is free
 *
 * What a million of parked tasklets cost is pages: each touches one of its C stack, and the kernel makes it when it is first
 * written to.  Frames alone take a tenth of that, and the C stack, whose page is there, is the next one's.  So this is tried
 * first where cold.c would copy what is in use.
 *
 *   1. The chain is captured as for a pickle (frame_capture.h): whatever cannot be is left to cold.c.  So is one with a frame
 *      object, which somebody may hold; with a generator, which others reach; with tracers, or while a monitoring tool asks for
 *      events: they would see what comes now.  Python code may run until here.
 *   2. The frames are told to handle nothing (frame_leave.h), and the tasklet is switched to, with an exception: it leaves all of
 *      its functions, and tasklet_entry(), which is told by turn.leaving, comes back here.  Nothing is freed on the way that a
 *      program could notice: the snapshot holds all of it.  Callbacks are refused as in a callback.
 *   3. The C stack is given back, and the snapshot is what the tasklet calls when its turn comes.  It stays in its channel's
 *      queue meanwhile: whoever sends finds it as before, and kill() and throw() reach it.
 *
 * Who asks for its frame object has it put on a C stack again, where it is parked in the call that gives the snapshot its
 * value.
 *
 * It has begun all the same: garbage of that kind gets TaskletExit, and so do those that a thread leaves.  For this, and for
 * reports, they are in a list.
 *
 * Only the thread's own: another one's C stack cannot be switched to.
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

static PyObject *order; /* the bomb that they leave by; kept for good */

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

/* What else would run, or be seen, on the way. */
static bool
is_plain(const struct plus_tasklet *task)
{
    const struct plus_pystate *state = &task->fiber.state;

    return plus_is_parked(task) && task->cold == NULL && plus_is_in_use(task) && !task->atomic &&
           !task->awaits && task->pending_irq == 0 && state->tracefunc == NULL &&
           state->profilefunc == NULL && plus_capturing_why_not(task) == NULL;
}

/* Operands of its call, and the channel that it waits in. */
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

/* Step 1; NULL without an exception. */
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

/* Switches to it until it switches back; what the last switch has left over is for who runs. */
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

/* Step 2. */
static void
leave(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    PyObject *value = task->tempval;

    sched->turn.leaving = task;
    task->tempval = Py_NewRef(order);
    /* A call that was reported when it began would report its end, also if nobody asks for that any more. */
    task->fiber.state.tracing++;
    visit(sched, task);
    plus_set_value(task, value);
    sched->turn.leaving = NULL;
}

/* Step 3. */
static void
settle(struct plus_scheduler *sched, struct plus_tasklet *task, PyObject *snapshot)
{
    plus_pystate_left(&task->fiber.state);
    task->fiber.sp = NULL;
    plus_stack_give(&sched->stacks, task->stack);
    task->stack = NULL;
    task->started = false;
    Py_SETREF(task->func, snapshot); /* which holds the other one */
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

    /* Python code may have run. */
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

/* What was so before hold_still(). */
struct before {
    bool in_callback;
    int collects;
};

/* Neither callbacks switch now, nor finalisers, which would run on the frames of one while `running` is another. */
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

    if (plus_make_ready(task) == 0 && task->vacated) { /* a warning runs code */
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
