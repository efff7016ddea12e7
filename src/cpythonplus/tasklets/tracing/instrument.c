/* Monitoring events in the frames of parked tasklets, from 3.12 on; see instrument.h.
 *
 * When a tool asks for events (sys.settrace() and sys.setprofile() do too), the interpreter rewrites running code: it
 * goes through the frames of all threads, and checks other code when it is next called.  Parked tasklets' frames are
 * in no thread's chain: a loop in one of them would go on without events.  So their code is shown to the interpreter:
 * one stand-in frame for each code object, in front of the thread's chain, while sys.monitoring.restart_events() goes
 * through all of them.
 *
 * When: each change has a number, and each scheduler remembers the last one that it has seen.  A tasklet that returns
 * from a switch compares the two.  If they differ, it checks all parked tasklets of all threads, on behalf of all
 * schedulers. From 3.14 on there are moments in which that would wait for ever; then the next switch checks again.
 *
 * What: each code object is shown once, however many tasklets are in it.  If all of them are up to date, nothing is
 * shown, because showing is a change itself.  If one is stale, all are shown: the change makes all others stale.
 *
 * The stand-in frames exist for that one call, which runs no Python code: no other code sees them.
 *
 * The watchdog switches events on and off too often for this: interrupts.c marks its own changes as seen.
 *
 * Rejected: linking the real frames, whose chains would have to be walked twice and repaired on each way out; a call
 * for each tasklet, as calls are numbered and the numbers run out.
 */
#include "instrument.h"

#include "../../_base/raise.h"
#include "../../_interp/frames/frames.h"

#if PLUS_INSTRUMENTED

#define JUST_SEEN 64

/* Code objects by their addresses, because equal-looking code objects compare equal.  If one is stale, those of all
 * frames are shown: showing is a change itself, which would leave the others stale. */
struct shown {
    PyObject *codes;
    uint64_t version;
    bool is_stale;
    PyCodeObject *just_seen[JUST_SEEN]; /* a cache: many parked tasklets run few functions */
};

static int
note_code(PyCodeObject *code, int offset, void *arg)
{
    struct shown *shown = arg;
    PyCodeObject **just_seen = &shown->just_seen[(uintptr_t)code / 64 % JUST_SEEN];

    if (*just_seen == code) {
        return 0;
    }
    *just_seen = code;
    shown->is_stale |= plus_instrumentation_version_of(code) != shown->version;
    PyObject *key = PyLong_FromVoidPtr(code);
    int result = key != NULL ? PyDict_SetItem(shown->codes, key, (PyObject *)code) : -1;

    Py_XDECREF(key);
    return result;
}

static int
note_tasklet(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    if (task->sched->running == task || !task->started || !task->alive) {
        return 0;
    }
    struct plus_frames frames = plus_tasklet_frames(task);

    return plus_frames_each(&frames, note_code, arg);
}

static int
note_all(struct shown *shown)
{
    int result = 0;

    for (struct plus_scheduler *sched = plus_schedulers; sched != NULL && result == 0;
         sched = sched->next_scheduler) {
        result = note_tasklet(sched->main, shown);
        if (result == 0) {
            result = plus_stacks_each(&sched->stacks, note_tasklet, shown);
        }
    }
    return result;
}

static int
show(PyThreadState *tstate, PyObject *codes)
{
    Py_ssize_t count = PyDict_GET_SIZE(codes), position = 0;
    char *memory = PyMem_Calloc((size_t)count, plus_frames_stand_in_bytes), *next = memory;
    PyObject *key, *code;

    if (memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    struct _PyInterpreterFrame **current = plus_pystate_current_frame(tstate), *top = *current;
    struct _PyInterpreterFrame *real = top;

    while (PyDict_Next(codes, &position, &key, &code)) {
        top = plus_frames_stand_in(next, (PyCodeObject *)code, top);
        next += plus_frames_stand_in_bytes;
    }
    *current = top;
    int result = plus_instrumentation_restart();

    *current = real;
    PyMem_Free(memory);
    return result;
}

void
plus_instrument_parked(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    struct plus_raised raised = plus_raised_take();

    struct shown shown = {.codes = PyDict_New(), .version = plus_instrumentation_version(tstate)};
    /* The running tasklet was parked when the change was made. */
    struct plus_frames running = plus_frames_of_thread(tstate);

    if (shown.codes == NULL || plus_frames_each(&running, note_code, &shown) != 0 ||
        note_all(&shown) != 0 || (shown.is_stale && show(tstate, shown.codes) < 0)) {
        PyErr_WriteUnraisable(NULL);
    }
    Py_XDECREF(shown.codes);
    for (struct plus_scheduler *it = plus_schedulers; it != NULL; it = it->next_scheduler) {
        it->turn.instrumented = plus_instrumentation_version(tstate);
    }
    plus_raised_put(raised);
}

static int
is_old(PyCodeObject *code, int offset, void *arg)
{
    const uint64_t *version = arg;

    return plus_instrumentation_version_of(code) != *version;
}

void
plus_instrument_new_frames(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    uint64_t version = plus_instrumentation_version(tstate);
    struct plus_frames frames = plus_frames_of_thread(tstate);

    if (plus_frames_each(&frames, is_old, &version) != 0 && plus_instrumentation_is_asked() &&
        !plus_instrumentation_must_wait(tstate)) {
        plus_instrument_parked();
    }
}

#endif
