/* The fields of a thread state that belong to a tasklet, version by version.
 *
 * The interpreter has one stack for each thread.  The thread state holds its frames, its depth, the exception that is
 * being handled, the current context and tracers, and (from 3.14 on) the limits of the C stack.  A switch of tasklets
 * changes the stack, so it exchanges these fields.  All others stay the thread's: its dict, so threading.local() too,
 * its identity, its place in the interpreter's list.
 *
 *     plus_pystate_exchange(from, to)     save: fields -> from
 *                                         load: to -> fields
 *     [C stacks are switched]
 *     plus_pystate_resumed(own)           on the other stack, when `own` runs again
 *
 * References move, and are not counted: the context, the trace and the profile object are either in the thread state or
 * in one parked `plus_pystate`, which visits and frees them.  There are two exceptions.  The bottom of the chain of
 * handled exceptions is in the `plus_pystate` even while the tasklet runs: the thread state points to it.  The executor
 * (3.14, 3.15) is borrowed by the interpreter, but a parked state owns it until it has resumed.
 *
 * GIL held.  Between save() and load() no Python code runs and no object is freed, so the half-exchanged state is never
 * visible.  A state is exchanged by its own thread only; other threads may read parked states.
 *
 *     a fresh stack     low | C stack ........ top | first chunk of frames ... high
 *
 * plus_pystate_fresh() makes that chunk as the interpreter makes a thread's first one, which it never gives back.  3.12
 * and 3.13 count C levels, so a small stack gets fewer of them; from 3.14 on the stack pointer is compared with the
 * limits, so they are exchanged.
 *
 * The stored recursion depth is the used part and not the remaining one: sys.setrecursionlimit() may be called in
 * between. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1 /* 3.14: the C stack's bounds are in the private half of the thread state */
#endif
#include "pystate.h"

#include "../../_base/memory/own_memory.h"
#include "../facts/probe_call.h"
#include "../facts/probes.h"
#include "pyframe.h"

#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_tstate.h"
#endif

/* ---- context, tracing, recursion depth ---- */

static void
fresh_rest(struct plus_pystate *state)
{
    state->tracing = 0;
    state->what_event = -1;
    if (!state->tracers_given) {
        state->tracefunc = state->profilefunc = NULL;
        state->traceobj = state->profileobj = NULL;
    }
    else {
        plus_pystate_tracers_changed(state, true);
        state->tracers_given = false;
    }
    state->recursion_depth = 0;
}

static void
save_rest(struct plus_pystate *state, PyThreadState *tstate)
{
    state->context = PLUS_TSTATE(tstate)->context;
    state->tracefunc = PLUS_TSTATE(tstate)->c_tracefunc;
    state->profilefunc = PLUS_TSTATE(tstate)->c_profilefunc;
    state->traceobj = PLUS_TSTATE(tstate)->c_traceobj;
    state->profileobj = PLUS_TSTATE(tstate)->c_profileobj;
    state->tracing = PLUS_TSTATE(tstate)->tracing;
#if PY_VERSION_HEX < 0x030C0000
    state->what_event = PLUS_TSTATE(tstate)->tracing_what;
    state->recursion_depth =
        PLUS_TSTATE(tstate)->recursion_limit - PLUS_TSTATE(tstate)->recursion_remaining;
#else
    state->what_event = PLUS_TSTATE(tstate)->what_event;
    state->recursion_depth =
        PLUS_TSTATE(tstate)->py_recursion_limit - PLUS_TSTATE(tstate)->py_recursion_remaining;
#endif
}

static void
load_rest(struct plus_pystate *state, PyThreadState *tstate)
{
    PLUS_TSTATE(tstate)->context = state->context;
    state->context = NULL;
    PLUS_TSTATE(tstate)
        ->context_ver++; /* cached values of context variables belong to the other context */
    PLUS_TSTATE(tstate)->c_tracefunc = state->tracefunc;
    PLUS_TSTATE(tstate)->c_profilefunc = state->profilefunc;
    PLUS_TSTATE(tstate)->c_traceobj = state->traceobj;
    PLUS_TSTATE(tstate)->c_profileobj = state->profileobj;
    state->traceobj = state->profileobj = NULL;
    PLUS_TSTATE(tstate)->tracing = state->tracing;
#if PY_VERSION_HEX < 0x030C0000
    PLUS_TSTATE(tstate)->tracing_what = state->what_event;
    PLUS_TSTATE(tstate)->recursion_remaining =
        PLUS_TSTATE(tstate)->recursion_limit - state->recursion_depth;
#else
    PLUS_TSTATE(tstate)->what_event = state->what_event;
    PLUS_TSTATE(tstate)->py_recursion_remaining =
        PLUS_TSTATE(tstate)->py_recursion_limit - state->recursion_depth;
#endif
}

struct _PyInterpreterFrame *
plus_pystate_hide_entries(PyThreadState *tstate)
{
    struct _PyInterpreterFrame **current = plus_pystate_current_frame(tstate), *kept = *current;

#if PY_VERSION_HEX >= 0x030D0000
    while (*current != NULL && !plus_pyframe_is_python(*current)) {
        *current = (*current)->previous;
    }
#endif
    return kept;
}

void
plus_pystate_end(PyThreadState *tstate)
{
    if (PLUS_TSTATE(tstate)->c_tracefunc != NULL) {
        struct _PyInterpreterFrame *current = plus_pystate_hide_entries(tstate);

        PyEval_SetTrace(NULL, NULL);
        *plus_pystate_current_frame(tstate) = current;
    }
    if (PLUS_TSTATE(tstate)->c_profilefunc != NULL) {
        PyEval_SetProfile(NULL, NULL);
    }
    Py_CLEAR(PLUS_TSTATE(tstate)->context);
    PLUS_TSTATE(tstate)->context_ver++;
}

PyObject *
plus_pystate_exchange_context(PyThreadState *tstate, PyObject *context)
{
    PyObject *old = PLUS_TSTATE(tstate)->context;

    PLUS_TSTATE(tstate)->context = context;
    PLUS_TSTATE(tstate)->context_ver++;
    return old;
}

#if PY_VERSION_HEX < 0x030C0000
/* 3.11 reads only this flag on its fast path. */
static void
flag_tracing(_PyCFrame *cframe, int tracing, bool traced)
{
    cframe->use_tracing = tracing == 0 && traced ? 255 : 0;
}
#endif

void
plus_pystate_clear_again(PyThreadState *tstate)
{
    Py_CLEAR(PLUS_TSTATE(tstate)->dict);
}

void
plus_pystate_drop_context(PyThreadState *tstate)
{
    Py_CLEAR(PLUS_TSTATE(tstate)->context);
}

#if PY_VERSION_HEX < 0x030C0000
void
plus_pystate_set_tracefunc(PyThreadState *tstate, Py_tracefunc function)
{
    PLUS_TSTATE(tstate)->c_tracefunc = function;
    flag_tracing(PLUS_TSTATE(tstate)->cframe, PLUS_TSTATE(tstate)->tracing,
                 function != NULL || PLUS_TSTATE(tstate)->c_profilefunc != NULL);
}

void
plus_pystate_set_parked_tracefunc(struct plus_pystate *state, Py_tracefunc function)
{
    state->tracefunc = function;
    flag_tracing(state->cframe, state->tracing, function != NULL || state->profilefunc != NULL);
}
#endif

void
plus_pystate_swap_tracers(PyThreadState *tstate, struct plus_pystate *state)
{
    Py_tracefunc tracefunc = PLUS_TSTATE(tstate)->c_tracefunc,
                 profilefunc = PLUS_TSTATE(tstate)->c_profilefunc;
    PyObject *traceobj = PLUS_TSTATE(tstate)->c_traceobj,
             *profileobj = PLUS_TSTATE(tstate)->c_profileobj;

    PLUS_TSTATE(tstate)->c_tracefunc = state->tracefunc;
    PLUS_TSTATE(tstate)->c_traceobj = state->traceobj;
    PLUS_TSTATE(tstate)->c_profilefunc = state->profilefunc;
    PLUS_TSTATE(tstate)->c_profileobj = state->profileobj;
    state->tracefunc = tracefunc;
    state->traceobj = traceobj;
    state->profilefunc = profilefunc;
    state->profileobj = profileobj;
#if PY_VERSION_HEX < 0x030C0000
    flag_tracing(PLUS_TSTATE(tstate)->cframe, PLUS_TSTATE(tstate)->tracing,
                 PLUS_TSTATE(tstate)->c_tracefunc != NULL ||
                     PLUS_TSTATE(tstate)->c_profilefunc != NULL);
#endif
}

void
plus_pystate_tracers_changed(struct plus_pystate *state, bool begun)
{
    if (!begun) {
        state->tracers_given = true;
        return;
    }
#if PY_VERSION_HEX < 0x030C0000 /* later versions do this in plus_pystate_load() */
    flag_tracing(state->cframe, state->tracing,
                 state->tracefunc != NULL || state->profilefunc != NULL);
#endif
}

void
plus_pystate_deepen(PyThreadState *tstate, int calls)
{
#if PY_VERSION_HEX < 0x030C0000
    PLUS_TSTATE(tstate)->recursion_remaining -= calls;
#else
    PLUS_TSTATE(tstate)->py_recursion_remaining -= calls;
#endif
}

void
plus_pystate_put_off_tracing(PyThreadState *tstate, bool off)
{
#if PY_VERSION_HEX < 0x030C0000
    PLUS_TSTATE(tstate)->tracing += off ? 1 : -1;
    flag_tracing(PLUS_TSTATE(tstate)->cframe, PLUS_TSTATE(tstate)->tracing,
                 PLUS_TSTATE(tstate)->c_tracefunc != NULL ||
                     PLUS_TSTATE(tstate)->c_profilefunc != NULL);
#else
    (void)tstate, (void)off;
#endif
}

/* ---- frames, exceptions, the C stack ---- */

/* 3.12 and 3.13 count C levels, with one limit that fits a stack of 8 MiB or more.  For smaller stacks: the greediest
 * common level, sorted(key=...), takes 5 KiB and counts three.  3.11 counts C levels together with Python calls; its
 * limit of 1,000 keeps them within 2 MiB. */
#define THREAD_STACK_BYTES ((size_t)8 << 20)
#define BYTES_PER_C_LEVEL 2048

#if PY_VERSION_HEX >= 0x030E0000
/* Part of the private half of a thread state. */
struct c_limits {
    uintptr_t top, soft, hard;
};

#define OFFSET_OF(field) offsetof(_PyThreadStateImpl, field)
_Static_assert(OFFSET_OF(c_stack_soft_limit) - OFFSET_OF(c_stack_top) ==
                       offsetof(struct c_limits, soft) &&
                   OFFSET_OF(c_stack_hard_limit) - OFFSET_OF(c_stack_top) ==
                       offsetof(struct c_limits, hard),
               "the limits of the C stack are not one behind the other");

/* 3.14.4 has one word more in the public half (gh-142183).  This is the number of bytes by which this interpreter's
 * private half is shifted against the headers of the build; the probe finds it. */
static ptrdiff_t limits_moved;

static struct c_limits *
limits_of(PyThreadState *tstate)
{
    char *impl = (char *)PLUS_TSTATE(tstate);

    return (struct c_limits *)(impl + OFFSET_OF(c_stack_top) + limits_moved);
}

/* The interpreter puts its two limits one and two margins above the low end of a stack; the margin depends on its
 * build, so it is computed from the thread's limits.  Rejected: PyUnstable_ThreadState_SetStackProtection(), which the
 * first releases of 3.14 do not have. */
static void
set_limits(struct plus_pystate *state, PyThreadState *tstate, const struct plus_bounds *stack)
{
    static uintptr_t margin;
    uintptr_t low = (uintptr_t)stack->low, bytes = (uintptr_t)stack->top - low;

    if (margin == 0) {
        margin = limits_of(tstate)->soft - limits_of(tstate)->hard;
    }
    uintptr_t step = bytes / 4 < margin ? bytes / 4 : margin; /* leave half of a small stack */

    state->c_stack_top = (uintptr_t)stack->top;
    state->c_stack_hard_limit = low + step;
    state->c_stack_soft_limit = low + 2 * step;
}
#endif

/* A chunk like a thread's first one: its first entry is unused, and the interpreter never frees it. */
static struct plus_chunk
made_chunk(void *memory, size_t bytes, _PyStackChunk *previous)
{
    _PyStackChunk *chunk = memory;

    chunk->previous = previous;
    chunk->size = bytes;
    chunk->top = 0;
    return (struct plus_chunk){chunk, &chunk->data[1], (PyObject **)((char *)memory + bytes)};
}

static void
set_chunk(PyThreadState *tstate, const struct plus_chunk *chunk)
{
    PLUS_TSTATE(tstate)->datastack_chunk = chunk->chunk;
    PLUS_TSTATE(tstate)->datastack_top = chunk->top;
    PLUS_TSTATE(tstate)->datastack_limit = chunk->limit;
}

struct plus_chunk
plus_pystate_enter_chunk(PyThreadState *tstate, void *memory, size_t bytes)
{
    struct plus_chunk outer = {PLUS_TSTATE(tstate)->datastack_chunk,
                               PLUS_TSTATE(tstate)->datastack_top,
                               PLUS_TSTATE(tstate)->datastack_limit};
    struct plus_chunk chunk = made_chunk(memory, bytes, outer.chunk);

    if (outer.chunk != NULL) { /* as the interpreter does */
        outer.chunk->top = (size_t)(outer.top - &outer.chunk->data[0]);
    }
    set_chunk(tstate, &chunk);
    return outer;
}

void
plus_pystate_leave_chunk(PyThreadState *tstate, const struct plus_chunk *outer)
{
    set_chunk(tstate, outer);
}

static void
fresh_frames(struct plus_pystate *state, PyThreadState *tstate, const struct plus_bounds *stack)
{
    struct plus_chunk chunk = made_chunk(stack->top, (size_t)(stack->high - stack->top), NULL);

    state->datastack_chunk = chunk.chunk;
    state->datastack_top = chunk.top;
    state->datastack_limit = chunk.limit;
#if PY_VERSION_HEX < 0x030D0000
    memset(&state->root, 0, sizeof(state->root));
    state->root.previous = &PLUS_TSTATE(tstate)->root_cframe;
    state->cframe = &state->root;
#elif PY_VERSION_HEX >= 0x030F0000
    state->current_frame = PLUS_TSTATE(tstate)->base_frame;
#else
    state->current_frame = NULL;
#endif
}

void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_bounds *stack)
{
    fresh_frames(state, tstate, stack);
    fresh_rest(state);
    state->exc_item.exc_value = NULL;
    state->exc_item.previous_item = NULL;
    state->exc_info = &state->exc_item;
#if PY_VERSION_HEX < 0x030D0000
    state->trash_nesting = 0;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
#if PY_VERSION_HEX < 0x030D0000
    int limit = C_RECURSION_LIMIT;
#else
    int limit = Py_C_RECURSION_LIMIT;
#endif
    size_t bytes = (size_t)(stack->top - stack->low), fits = bytes / BYTES_PER_C_LEVEL;

    state->c_recursion_remaining =
        bytes >= THREAD_STACK_BYTES || fits > (size_t)limit ? limit : (int)fits;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    set_limits(state, tstate, stack);
    state->current_executor = NULL;
#endif
}

static inline void
save(struct plus_pystate *state, PyThreadState *tstate)
{
    save_rest(state, tstate);
#if PY_VERSION_HEX < 0x030D0000
    state->cframe = PLUS_TSTATE(tstate)->cframe;
#else
    state->current_frame = PLUS_TSTATE(tstate)->current_frame;
#endif
    state->datastack_chunk = PLUS_TSTATE(tstate)->datastack_chunk;
    state->datastack_top = PLUS_TSTATE(tstate)->datastack_top;
    state->datastack_limit = PLUS_TSTATE(tstate)->datastack_limit;
    state->exc_info = PLUS_TSTATE(tstate)->exc_info;
#if PY_VERSION_HEX < 0x030C0000
    state->trash_nesting = PLUS_TSTATE(tstate)->trash_delete_nesting;
#elif PY_VERSION_HEX < 0x030D0000
    state->trash_nesting = PLUS_TSTATE(tstate)->trash.delete_nesting;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    state->c_recursion_remaining = PLUS_TSTATE(tstate)->c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    const struct c_limits *limits = limits_of(tstate);

    state->c_stack_top = limits->top;
    state->c_stack_soft_limit = limits->soft;
    state->c_stack_hard_limit = limits->hard;
    state->current_executor = Py_XNewRef(PLUS_TSTATE(tstate)->current_executor);
#endif
}

static inline void
load(PyThreadState *tstate, struct plus_pystate *state)
{
    load_rest(state, tstate);
#if PY_VERSION_HEX < 0x030D0000
    PLUS_TSTATE(tstate)->cframe = state->cframe;
#else
    PLUS_TSTATE(tstate)->current_frame = state->current_frame;
#endif
    PLUS_TSTATE(tstate)->datastack_chunk = state->datastack_chunk;
    PLUS_TSTATE(tstate)->datastack_top = state->datastack_top;
    PLUS_TSTATE(tstate)->datastack_limit = state->datastack_limit;
    PLUS_TSTATE(tstate)->exc_info = state->exc_info;
#if PY_VERSION_HEX < 0x030C0000
    PLUS_TSTATE(tstate)->trash_delete_nesting = state->trash_nesting;
#elif PY_VERSION_HEX < 0x030D0000
    PLUS_TSTATE(tstate)->trash.delete_nesting = state->trash_nesting;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    PLUS_TSTATE(tstate)->c_recursion_remaining = state->c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    struct c_limits *limits = limits_of(tstate);

    limits->top = state->c_stack_top;
    limits->soft = state->c_stack_soft_limit;
    limits->hard = state->c_stack_hard_limit;
    PLUS_TSTATE(tstate)->current_executor = state->current_executor;
#endif
#if PY_VERSION_HEX >= 0x030F0000
    PLUS_TSTATE(tstate)->last_profiled_frame =
        NULL; /* belongs to a sampling profiler and the other stack */
#endif
}

void
plus_pystate_exchange(PyThreadState *tstate, struct plus_pystate *from, struct plus_pystate *to)
{
    save(from, tstate);
    load(tstate, to);
}

void
plus_pystate_load(PyThreadState *tstate, struct plus_pystate *state)
{
    load(tstate, state);
}

struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_moved *moved)
{
#if PY_VERSION_HEX < 0x030D0000
    const char *at = (const char *)state->cframe; /* a C variable of the evaluation loop */

    if (at >= moved->low && at < moved->high) {
        at += moved->moved;
    }
    return at != NULL ? ((const _PyCFrame *)at)->current_frame : NULL;
#else
    return state->current_frame;
#endif
}

char *
plus_pystate_frames_end(const struct plus_pystate *state, const char *top)
{
    return (char *)state->datastack_chunk == top ? (char *)state->datastack_top : NULL;
}

void
plus_pystate_left(struct plus_pystate *state)
{
    Py_CLEAR(state->exc_item.exc_value);
}

int
plus_pystate_traverse(struct plus_pystate *state, visitproc visit, void *arg)
{
    Py_VISIT(state->context);
    Py_VISIT(state->traceobj);
    Py_VISIT(state->profileobj);
    Py_VISIT(state->exc_item.exc_value);
    return 0;
}

void
plus_pystate_clear(struct plus_pystate *state)
{
    Py_CLEAR(state->context);
    Py_CLEAR(state->traceobj);
    Py_CLEAR(state->profileobj);
    Py_CLEAR(state->exc_item.exc_value);
#if PY_VERSION_HEX >= 0x030E0000
    Py_CLEAR(state->current_executor); /* of a tasklet that was abandoned */
#endif
}

/* ---- proof --------------- */

struct seen {
    PyThreadState *tstate;
    int depth;
    PyObject **datastack_top;
};

static void
note(struct seen *seen)
{
    seen->depth = plus_pystate_depth(seen->tstate);
    seen->datastack_top = PLUS_TSTATE(seen->tstate)->datastack_top;
}

static void
note_inside(const struct plus_probe_call *call, void *arg)
{
    note(arg);
}

/* True if a call in Python changes the recursion counter and takes room for its frame. */
static bool
calls_count(PyThreadState *tstate)
{
    struct seen before = {tstate}, inside = {tstate}, after = {tstate};

    note(&before);
    if (plus_probe_call(note_inside, &inside) < 0) {
        return false;
    }
    note(&after);
    return inside.depth > before.depth && inside.depth < before.depth + 10 &&
           after.depth == before.depth && inside.datastack_top != before.datastack_top &&
           after.datastack_top == before.datastack_top;
}

static bool
context_is_there(PyThreadState *tstate)
{
    PyObject *context = PyContext_New();

    if (context == NULL || PyContext_Enter(context) < 0) {
        Py_XDECREF(context);
        return false;
    }
    bool there = plus_pystate_context(tstate) == context;
    there &= PyContext_Exit(context) == 0;
    Py_DECREF(context);
    return there;
}

static bool
handled_exception_is_there(PyThreadState *tstate)
{
    PyObject *probe = PyObject_CallNoArgs(PyExc_ValueError);
    PyObject *outer = PyErr_GetHandledException();
    uintptr_t place = (uintptr_t)PLUS_TSTATE(tstate)->exc_info;
    _PyErr_StackItem before, item;

    if (probe == NULL || !plus_read_memory(place, &before, sizeof before)) {
        Py_XDECREF(outer);
        Py_XDECREF(probe);
        return false;
    }
    PyErr_SetHandledException(probe);
    bool there = plus_read_memory(place, &item, sizeof item) && item.exc_value == probe;
    /* A generator that handles no exception is given its caller's as the current one and has none of its own. */
    PyErr_SetHandledException(there && before.exc_value != outer ? NULL : outer);
    Py_XDECREF(outer);
    Py_DECREF(probe);
    return there;
}

/* True if sys.gettrace() or getprofile() returns the object in the field, as it does if the function is the
 * interpreter's own. */
static bool
tracer_is_there(const PyThreadState *tstate, bool profile)
{
    PyObject *get = PySys_GetObject(profile ? "getprofile" : "gettrace"); /* borrowed */
    PyObject *told = get == NULL ? NULL : PyObject_CallNoArgs(get);
    PyObject *object = plus_pystate_traceobj(tstate, profile);
    bool there = get == NULL || (told != NULL && object == (told == Py_None ? NULL : told));

    Py_XDECREF(told);
    return there;
}

static bool
limits_are_there(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030E0000
    static const ptrdiff_t known[] = {0, sizeof(void *), -(ptrdiff_t)sizeof(void *)};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    /* A reference count precedes the three words, so only one shift fits. */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        limits_moved = known[i];
        const struct c_limits *limits = limits_of(tstate);
        if (limits->hard < limits->soft && limits->soft < here && here < limits->top) {
            return true;
        }
    }
    return false;
#elif PY_VERSION_HEX >= 0x030C0000
    int before = PLUS_TSTATE(tstate)->c_recursion_remaining;

    if (Py_EnterRecursiveCall(" in a probe") != 0) {
        return false;
    }
    int inside = PLUS_TSTATE(tstate)->c_recursion_remaining;
    Py_LeaveRecursiveCall();
    return inside == before - 1 && PLUS_TSTATE(tstate)->c_recursion_remaining == before;
#else
    return true;
#endif
}

const char *
plus_probe_thread_state(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    const char *refusal = plus_fact_refusal(PLUS_FACT_FRAMES);

    if (refusal != NULL) {
        return refusal;
    }
    bool there = calls_count(tstate) && context_is_there(tstate) &&
                 handled_exception_is_there(tstate) && tracer_is_there(tstate, false) &&
                 tracer_is_there(tstate, true) && limits_are_there(tstate);

    return there ? NULL : "the interpreter's thread state is not laid out as expected";
}
