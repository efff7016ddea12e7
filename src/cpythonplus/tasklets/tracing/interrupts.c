/* The places where Python code can be interrupted; see interrupts.h.
 *
 * A watch that counts uses it: plus_interrupts_on() and off() come in pairs.  Each tasklet that such a thread switches
 * to passes plus_interrupts_extend() first if it was parked, plus_interrupts_begin() if it is new.  Reports from
 * threads whose watch does not count are dropped here.
 *
 * 3.12+: events of sys.monitoring, on while any scheduler wants them (`users`).  Setting them changes the code of the
 * frames in all threads' chains, and other code when it is entered; a loop in a parked tasklet is neither.  Setting and
 * removing *local* events of its code object makes the interpreter check it again, and leaves the global events in
 * place. The same holds at the end: a parked loop keeps its events when they are over, and loses them at the first one
 * that it reports.  instrument.h would show all parked tasklets to the interpreter at each change, which is too much
 * for changes this frequent.  Rejected: remembering which code objects were changed (references to them, and a walk
 * over all at the end), and DISABLE (it lasts into the next watch).
 *
 * An exception for a tasklet that was interrupted at a jump is raised by the next instruction that is not a NOP.
 * Raised by the callback, it would miss handlers: up to 3.13 the interpreter looks for them at a wrong offset, and the
 * NOP that `try` leaves, at which a loop may begin, is not even covered by the handlers around it.
 *
 * 3.11: a trace function in C, in front of the tasklet's own one, which gets the calls from it.  It is installed in
 * each tasklet that is switched to, and removes itself at the first event when it is not wanted any more.  Line events
 * report each jump back except that of an instruction to itself (`while True: pass` in one line): there it asks for
 * opcode events, which the tasklet's own function does not see.
 */
#include "interrupts.h"

#include "../../_interp/frames/frame_tracing.h"

#include "instrument.h"

#include "../../_base/process/clock.h"
#include "../../_base/raise.h"

#include <opcode.h>

#if PLUS_INSTRUMENTED

enum { SET_EVENTS, SET_LOCAL_EVENTS, GET_TOOL, USE_TOOL_ID, REGISTER_CALLBACK, FUNCTIONS };

static const char *const function_names[FUNCTIONS] = {
    "set_events", "set_local_events", "get_tool", "use_tool_id", "register_callback",
};
static PyObject *functions[FUNCTIONS];
static PyObject *tool, *tool_name; /* tool: NULL until we have one */
static PyObject *some_events, *no_events;
static int users; /* number of schedulers that use it */

/* CPython 3.13 and later number the changes of events, of all tools together, with 24 bits, and refuse further ones: a
 * loop of 60 watches a second would get there in 39 hours.  So after the first million changes the events stay on for a
 * while when a watch is over, mostly until the next one: then it takes years. */
#define CHANGES_AT_ONCE (UINT64_C(1) << 20)
#define LINGER_NS (10 * PLUS_NS_PER_S)
static uint64_t changes;         /* of events, by this file */
static uint64_t lingers_from_ns; /* coarse; 0: the events are on for `users`, or off */

/* The version of code that is up to date; other versions may be so too, after other tools have changed their events.
 * Code that ran before any tool asked for events has version 0. */
#define NO_VERSION UINT64_MAX
static uint64_t version = NO_VERSION;

static int
call(int function, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *args[] = {a, b, c};
    PyObject *result = PyObject_Vectorcall(functions[function], args, c != NULL ? 3 : 2, NULL);

    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static PyObject *instruction_event;
static unsigned kept; /* exceptions for a next instruction, of all tasklets */

/* The events that code objects report besides the global ones. */
static PyObject *
local_events(void)
{
    return kept > 0 ? instruction_event : no_events;
}

/* Makes the interpreter compare the code's events with the global ones. */
static int
refresh(PyCodeObject *code)
{
    if (!plus_instrumentation_is_possible(code)) {
        return 0;
    }
    if (call(SET_LOCAL_EVENTS, tool, (PyObject *)code, some_events) < 0) {
        return -1;
    }
    return call(SET_LOCAL_EVENTS, tool, (PyObject *)code, local_events());
}

/* Marks this change of the events as seen: parked tasklets need not be shown to the interpreter, see the top.  A debug
 * build of the interpreter asserts that all running code has seen the last change. */
static void
count_as_seen(uint64_t before, uint64_t after)
{
#ifndef Py_DEBUG
    for (struct plus_scheduler *it = plus_schedulers; it != NULL; it = it->next_scheduler) {
        if (it->turn.instrumented == before) {
            it->turn.instrumented = after;
        }
    }
#endif
}

static int
set_events(PyObject *wanted)
{
    PyThreadState *tstate = PyThreadState_Get();
    uint64_t before = plus_instrumentation_version(tstate);
    int result = call(SET_EVENTS, tool, wanted, NULL);

    count_as_seen(before, plus_instrumentation_version(tstate));
    changes++;
    lingers_from_ns = 0;
    return result;
}

static void
switch_off(void)
{
    struct plus_raised raised = plus_raised_take();

    if (set_events(no_events) < 0) {
        PyErr_WriteUnraisable(tool_name);
    }
    plus_raised_put(raised);
}

/* Handles an event while there are no users. */
static void
dismiss(PyObject *code)
{
    if (lingers_from_ns != 0 && plus_now_coarse_ns() - lingers_from_ns > LINGER_NS) {
        switch_off();
    }
    if (lingers_from_ns == 0) {
        /* Remove the events that a watch that is over has left in the code. */
        if (PyCode_Check(code) && refresh((PyCodeObject *)code) < 0) {
            PyErr_WriteUnraisable(code);
        }
    }
}

/* Returns 0, or -1 with the exception that was sent to the running tasklet. */
static int
report(PyObject *code)
{
    struct plus_scheduler *sched = plus_scheduler_own;

    if (users == 0) {
        dismiss(code);
        return 0;
    }
    return sched != NULL && sched->watch.counting ? plus_above.event(sched, true) : 0;
}

/* Keeps the exception for the next instruction of `code`, which the running tasklet executes.  Returns 0, or -1 with
 * the exception. */
static int
raise_at_next_instruction(PyObject *code)
{
    struct plus_tasklet *task = plus_scheduler_own->running;
    PyObject *exception = PyErr_GetRaisedException();

    if (call(SET_LOCAL_EVENTS, tool, code, instruction_event) < 0) {
        PyErr_Clear();
        PyErr_SetRaisedException(exception);
        return -1;
    }
    kept += task->thrown == NULL;
    Py_XSETREF(task->thrown, exception);
    return 0;
}

static bool
is_nop(PyObject *code, PyObject *offset)
{
    PyObject *bytes = PyCode_GetCode((PyCodeObject *)code);
    Py_ssize_t at = PyLong_AsSsize_t(offset);
    bool is = bytes != NULL && at >= 0 && at < PyBytes_GET_SIZE(bytes) &&
              PyBytes_AS_STRING(bytes)[at] == NOP;

    if (bytes == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(bytes);
    return is;
}

/* Stops the instruction events of `code` if no exception is kept; several tasklets may be about to raise in it. */
static void
stop_instructions(PyObject *code)
{
    if (kept == 0 && call(SET_LOCAL_EVENTS, tool, code, no_events) < 0) {
        PyErr_WriteUnraisable(code);
    }
}

/* Called with (code, offset).  Signal handlers or another tool may have let another tasklet run meanwhile. */
static PyObject *
on_instruction(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct plus_tasklet *task = plus_scheduler_own != NULL ? plus_scheduler_own->running : NULL;

    if (task == NULL || task->thrown == NULL || is_nop(args[0], args[1])) {
        stop_instructions(args[0]);
        Py_RETURN_NONE;
    }
    PyObject *exception = task->thrown;

    task->thrown = NULL;
    kept--;
    stop_instructions(args[0]);
    PyErr_SetRaisedException(exception);
    return NULL;
}

/* Called with (code, offset). */
static PyObject *
on_entry(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return report(args[0]) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* Called with (code, offset, destination). */
static PyObject *
on_jump(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (users > 0 && count == 3 && PyLong_AsLong(args[2]) > PyLong_AsLong(args[1])) {
        Py_RETURN_NONE;
    }
    return report(args[0]) == 0 || raise_at_next_instruction(args[0]) == 0 ? Py_NewRef(Py_None)
                                                                           : NULL;
}

static PyMethodDef callbacks[] = {
    {"watchdog", (PyCFunction)(void (*)(void))on_entry, METH_FASTCALL, NULL},
    {"watchdog", (PyCFunction)(void (*)(void))on_jump, METH_FASTCALL, NULL},
    {"watchdog", (PyCFunction)(void (*)(void))on_instruction, METH_FASTCALL, NULL},
};

static const struct {
    const char *name;
    int callback;
} events[] = {{"PY_START", 0}, {"PY_RESUME", 0}, {"JUMP", 1}, {"INSTRUCTION", 2}};

enum { INSTRUCTION = 3 }; /* not a global event */

/* Registers the callback of an event and returns the event's bit; -1 with an exception. */
static long
register_event(PyObject *numbers, const char *name, int which)
{
    PyObject *number = PyObject_GetAttrString(numbers, name);
    PyObject *callback = PyCFunction_New(&callbacks[which], NULL);
    long bit = number != NULL ? PyLong_AsLong(number) : -1;

    if (number == NULL || callback == NULL || call(REGISTER_CALLBACK, tool, number, callback) < 0) {
        bit = -1;
    }
    Py_XDECREF(number);
    Py_XDECREF(callback);
    return bit;
}

static int
register_events(PyObject *monitoring)
{
    PyObject *numbers = PyObject_GetAttrString(monitoring, "events");
    long bits = 0, bit = numbers != NULL ? 0 : -1;

    for (int i = 0; bit >= 0 && i <= INSTRUCTION; i++) {
        bit = register_event(numbers, events[i].name, events[i].callback);
        bits |= i < INSTRUCTION ? bit : 0;
    }
    Py_XDECREF(numbers);
    Py_XSETREF(instruction_event, bit >= 0 ? PyLong_FromLong(bit) : NULL);
    if (instruction_event == NULL) {
        return -1;
    }
    Py_XSETREF(some_events, PyLong_FromLong(bits));
    return some_events != NULL ? 0 : -1;
}

/* Takes the tool number: 1, or 0 if another tool has it; -1 with an exception. */
static int
take_tool(PyObject *monitoring, long number)
{
    PyObject *candidate = PyLong_FromLong(number);
    PyObject *owner =
        candidate != NULL ? PyObject_CallOneArg(functions[GET_TOOL], candidate) : NULL;
    int taken = owner == NULL ? -1 : owner == Py_None;

    Py_XDECREF(owner);
    if (taken == 1 && call(USE_TOOL_ID, candidate, tool_name, NULL) < 0) {
        taken = -1;
    }
    if (taken == 1) {
        Py_XSETREF(tool, Py_NewRef(candidate));
        taken = register_events(monitoring) < 0 ? -1 : 1;
    }
    Py_XDECREF(candidate);
    return taken;
}

static int
find_tool(PyObject *monitoring)
{
    /* Numbers without a name first: debuggers, coverage and profilers insist on theirs. */
    static const long order[] = {4, 3, 5, 2, 0, 1};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        int taken = take_tool(monitoring, order[i]);

        if (taken != 0) {
            return taken > 0 ? 0 : -1;
        }
    }
    PyErr_SetString(
        PyExc_RuntimeError,
        "interrupting tasklets requires a tool id of sys.monitoring, and all are in use");
    return -1;
}

/* Returns 1 if the tool is still ours; 0 if other code has freed it; -1 with an exception. */
static int
tool_is_ours(void)
{
    PyObject *owner = tool != NULL ? PyObject_CallOneArg(functions[GET_TOOL], tool) : NULL;
    int is = tool == NULL ? 0 : owner == NULL ? -1 : owner == tool_name;

    Py_XDECREF(owner);
    return is;
}

int
plus_interrupts_prepare(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring");

    if (monitoring == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "interrupting tasklets requires sys.monitoring");
        return -1;
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        if (functions[i] == NULL &&
            (functions[i] = PyObject_GetAttrString(monitoring, function_names[i])) == NULL) {
            return -1;
        }
    }
    if (tool_name == NULL && (tool_name = PyUnicode_FromString("cpythonplus.tasklets")) == NULL) {
        return -1;
    }
    if (no_events == NULL && (no_events = PyLong_FromLong(0)) == NULL) {
        return -1;
    }
    int ours = tool_is_ours();

    return ours != 0 ? (ours > 0 ? 0 : -1) : find_tool(monitoring);
}

static int
refresh_if_old(PyCodeObject *code, int offset, void *ignored)
{
    if (plus_instrumentation_version_of(code) != version) {
        if (refresh(code) < 0) {
            return -1;
        }
        version = plus_instrumentation_version_of(code);
    }
    return 0;
}

static void
refresh_all(const struct plus_frames *frames, struct plus_tasklet *task)
{
    struct plus_raised raised = plus_raised_take();

    if (plus_frames_each(frames, refresh_if_old, NULL) != 0) {
        PyErr_WriteUnraisable((PyObject *)task);
    }
    plus_raised_put(raised);
}

void
plus_interrupts_extend(struct plus_tasklet *task)
{
    struct plus_frames frames = plus_tasklet_frames(task);

    refresh_all(&frames, task);
}

void
plus_interrupts_extend_running(struct plus_scheduler *sched)
{
    struct plus_frames frames = plus_frames_of_thread(sched->tstate);

    refresh_all(&frames, sched->running);
}

static int
switch_on(void)
{
    version = NO_VERSION;
    if (set_events(some_events) < 0) {
        struct plus_raised raised = plus_raised_take();

        (void)set_events(no_events);
        plus_raised_put(raised);
        return -1;
    }
    return 0;
}

int
plus_interrupts_on(struct plus_scheduler *sched)
{
    bool were_on = users > 0 || lingers_from_ns != 0;

    lingers_from_ns = 0;
    if (!were_on && switch_on() < 0) {
        return -1;
    }
    if (were_on && sched->running != sched->watch.owner) {
        /* The running tasklet may have been parked when another thread's watch switched the events on. */
        plus_interrupts_extend_running(sched);
    }
    users++;
    return 0;
}

void
plus_interrupts_off(struct plus_scheduler *sched)
{
    if (--users > 0 || plus_compat_is_finalizing()) {
        return;
    }
    if (changes < CHANGES_AT_ONCE) {
        switch_off();
    }
    else {
        lingers_from_ns = plus_now_coarse_ns();
    }
}

uint64_t
plus_interrupts_changes(uint64_t pretended)
{
    uint64_t before = changes;

    changes += pretended;
    return before;
}

#else

static int
trace(PyObject *object, PyFrameObject *frame, int what, PyObject *arg);

/* Installs our trace function in front of that of `task`, which runs. */
static void
stand_in_front(PyThreadState *tstate, struct plus_tasklet *task)
{
    task->own_trace = plus_pystate_tracefunc(tstate, false);
    plus_pystate_set_tracefunc(tstate, trace);
}

/* Whether this is a call, a resumption or a jump back.  After a return into a frame a jump cannot be recognised; the
 * call has been counted. */
static bool
is_event(struct plus_watch *watch, PyFrameObject *frame, int what)
{
    int offset = PyFrame_GetLasti(frame);
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool itself = plus_tracing_jumps_to_itself(code, offset);
    bool counts =
        what == PyTrace_CALL || (what == PyTrace_OPCODE && itself) ||
        (what == PyTrace_LINE && watch->last_frame == frame && offset <= watch->last_offset);

    Py_DECREF(code);
    if (itself) {
        plus_tracing_ask_for_opcodes(frame);
    }
    if (what != PyTrace_OPCODE) {
        watch->last_frame = frame;
        watch->last_offset = offset;
    }
    return counts;
}

struct opening {
    struct plus_frames frames;
    int depth; /* of the frame that is visited; 0: the innermost */
};

/* A frame that already jumps to itself reports nothing, so it is made to.  It need not be the innermost: a signal
 * handler or a finaliser may run above it. */
static int
open_loop(PyCodeObject *code, int offset, void *arg)
{
    struct opening *opening = arg;
    int depth = opening->depth++;

    if (plus_tracing_jumps_to_itself(code, offset)) {
        PyFrameObject *frame = (PyFrameObject *)plus_frames_object(&opening->frames);

        for (; depth > 0 && frame != NULL; depth--) {
            Py_SETREF(frame, PyFrame_GetBack(frame));
        }
        if (frame != NULL) {
            plus_tracing_ask_for_opcodes(frame);
            Py_DECREF(frame);
        }
        else {
            PyErr_Clear(); /* there was no memory for it */
        }
    }
    return 0;
}

static void
open_loops(struct plus_frames frames)
{
    struct opening opening = {.frames = frames};
    /* 3.11 collects at any allocation, and the frames go on in finalisers. */
    int collects = PyGC_Disable();

    (void)plus_frames_each(&frames, open_loop, &opening);
    if (collects) {
        PyGC_Enable();
    }
}

static int
trace(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    struct plus_scheduler *sched = plus_scheduler_own;

    if (sched == NULL) { /* the thread is ending: we are in a destructor */
        plus_pystate_set_tracefunc(PyThreadState_Get(), NULL);
        return 0;
    }
    struct plus_tasklet *task = sched->running;
    PyThreadState *tstate = sched->tstate;
    int result = 0;

    if (task->thrown != NULL && what == PyTrace_OPCODE && !plus_tracing_is_at_nop(frame)) {
        PyObject *value = task->thrown;

        task->thrown = NULL;
        plus_tracing_stop_opcodes(frame);
        plus_raise_again(value);
        return -1;
    }
    if (task->own_trace != NULL &&
        !(what == PyTrace_OPCODE && plus_tracing_asked_for_opcodes(frame))) {
        result = task->own_trace(object, frame, what, arg);
        if (plus_pystate_tracefunc(tstate, false) != trace) { /* it has set another one, or NULL */
            stand_in_front(tstate, task);
        }
    }
    if (!sched->watch.counting) {
        if (task->thrown == NULL) {
            plus_pystate_set_tracefunc(tstate, task->own_trace);
            plus_tracing_stop_opcodes(frame);
        }
        return result;
    }
    if (result == 0 && (what == PyTrace_CALL || what == PyTrace_LINE || what == PyTrace_OPCODE)) {
        result = plus_above.event(sched, is_event(&sched->watch, frame, what));
    }
    if (result < 0 && what != PyTrace_CALL && plus_tracing_is_at_nop(frame)) {
        Py_XSETREF(task->thrown, plus_compat_take_exception());
        plus_tracing_ask_for_opcodes(frame);
        result = 0;
    }
    return result;
}

int
plus_interrupts_prepare(void)
{
    return 0;
}

void
plus_interrupts_begin(struct plus_scheduler *sched)
{
    if (sched->watch.counting && plus_pystate_tracefunc(sched->tstate, false) != trace) {
        stand_in_front(sched->tstate, sched->running);
    }
    else { /* sets the thread state's flag for this tasklet */
        plus_pystate_set_tracefunc(sched->tstate, plus_pystate_tracefunc(sched->tstate, false));
    }
}

int
plus_interrupts_on(struct plus_scheduler *sched)
{
    if (sched->running != sched->watch.owner &&
        plus_pystate_tracefunc(sched->tstate, false) != trace) {
        stand_in_front(sched->tstate, sched->running);
        open_loops(plus_frames_of_thread(sched->tstate));
    }
    return 0;
}

void
plus_interrupts_off(struct plus_scheduler *sched)
{
    if (plus_pystate_tracefunc(sched->tstate, false) == trace) {
        plus_pystate_set_tracefunc(sched->tstate, sched->running->own_trace);
    }
}

void
plus_interrupts_extend(struct plus_tasklet *task)
{
    struct plus_pystate *state = &task->fiber.state;

    if (state->tracefunc != trace) {
        task->own_trace = state->tracefunc;
    }
    plus_pystate_set_parked_tracefunc(state, trace);
    open_loops(plus_tasklet_frames(task));
}

void
plus_interrupts_extend_running(struct plus_scheduler *sched)
{
    open_loops(plus_frames_of_thread(sched->tstate));
}

uint64_t
plus_interrupts_changes(uint64_t pretended)
{
    return 0;
}

#endif
