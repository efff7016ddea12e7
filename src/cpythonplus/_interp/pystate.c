/* Layouts of the thread state, version by version; see pystate.h. */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1 /* 3.14: the C stack's bounds are in the private half of the thread state */
#endif
#include "pystate.h"

#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_tstate.h"
#endif

#include <string.h>

const char *
plus_pystate_refusal(void)
{
#if defined(Py_GIL_DISABLED)
    return "tasklets require an interpreter that is built with a GIL";
#else
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        return "compiled for another version of Python";
    }
    PyThreadState *tstate = PyThreadState_Get();

    if (PyThreadState_GetInterpreter(tstate) != PyInterpreterState_Main()) {
        return "tasklets work in the main interpreter only";
    }
    /* The frames that run now must lie in the data stack as this file sees it. */
    if (tstate->datastack_chunk == NULL || tstate->datastack_top < tstate->datastack_chunk->data ||
        tstate->datastack_top > tstate->datastack_limit || tstate->exc_info == NULL) {
        return "the interpreter's thread state is not as expected";
    }
    return NULL;
#endif
}

/* ---- context, tracing, recursion depth ---- */

static void
fresh_rest(struct plus_pystate *state, PyObject *context)
{
    state->context = context;
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
    state->context = tstate->context;
    state->tracefunc = tstate->c_tracefunc;
    state->profilefunc = tstate->c_profilefunc;
    state->traceobj = tstate->c_traceobj;
    state->profileobj = tstate->c_profileobj;
    state->tracing = tstate->tracing;
#if PY_VERSION_HEX < 0x030C0000
    state->what_event = tstate->tracing_what;
    state->recursion_depth = tstate->recursion_limit - tstate->recursion_remaining;
#else
    state->what_event = tstate->what_event;
    state->recursion_depth = tstate->py_recursion_limit - tstate->py_recursion_remaining;
#endif
}

static void
load_rest(struct plus_pystate *state, PyThreadState *tstate)
{
    tstate->context = state->context;
    state->context = NULL;
    tstate->context_ver++; /* what context variables have cached is of the other context */
    tstate->c_tracefunc = state->tracefunc;
    tstate->c_profilefunc = state->profilefunc;
    tstate->c_traceobj = state->traceobj;
    tstate->c_profileobj = state->profileobj;
    state->traceobj = state->profileobj = NULL;
    tstate->tracing = state->tracing;
#if PY_VERSION_HEX < 0x030C0000
    tstate->tracing_what = state->what_event;
    tstate->recursion_remaining = tstate->recursion_limit - state->recursion_depth;
#else
    tstate->what_event = state->what_event;
    tstate->py_recursion_remaining = tstate->py_recursion_limit - state->recursion_depth;
#endif
}

void
plus_pystate_end(PyThreadState *tstate)
{
    if (tstate->c_tracefunc != NULL) {
        PyEval_SetTrace(NULL, NULL);
    }
    if (tstate->c_profilefunc != NULL) {
        PyEval_SetProfile(NULL, NULL);
    }
    Py_CLEAR(tstate->context);
    tstate->context_ver++;
}

PyObject *
plus_pystate_exchange_context(PyThreadState *tstate, PyObject *context)
{
    PyObject *old = tstate->context;

    tstate->context = context;
    tstate->context_ver++;
    return old;
}

#if PY_VERSION_HEX < 0x030C0000
/* 3.11 has a flag beside the C stack's part of the state, so that it need not look at the rest. */
static void
flag_tracing(_PyCFrame *cframe, int tracing, bool traced)
{
    cframe->use_tracing = tracing == 0 && traced ? 255 : 0;
}
#endif

void
plus_pystate_clear_again(PyThreadState *tstate)
{
    Py_CLEAR(tstate->dict);
}

void
plus_pystate_drop_context(PyThreadState *tstate)
{
    Py_CLEAR(tstate->context);
}

#if PY_VERSION_HEX < 0x030C0000
void
plus_pystate_set_tracefunc(PyThreadState *tstate, Py_tracefunc function)
{
    tstate->c_tracefunc = function;
    flag_tracing(tstate->cframe, tstate->tracing,
                 function != NULL || tstate->c_profilefunc != NULL);
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
    Py_tracefunc tracefunc = tstate->c_tracefunc, profilefunc = tstate->c_profilefunc;
    PyObject *traceobj = tstate->c_traceobj, *profileobj = tstate->c_profileobj;

    tstate->c_tracefunc = state->tracefunc;
    tstate->c_traceobj = state->traceobj;
    tstate->c_profilefunc = state->profilefunc;
    tstate->c_profileobj = state->profileobj;
    state->tracefunc = tracefunc;
    state->traceobj = traceobj;
    state->profilefunc = profilefunc;
    state->profileobj = profileobj;
#if PY_VERSION_HEX < 0x030C0000
    flag_tracing(tstate->cframe, tstate->tracing,
                 tstate->c_tracefunc != NULL || tstate->c_profilefunc != NULL);
#endif
}

void
plus_pystate_tracers_changed(struct plus_pystate *state, bool begun)
{
    if (!begun) {
        state->tracers_given = true;
        return;
    }
#if PY_VERSION_HEX < 0x030C0000 /* else it is done when the state is loaded */
    flag_tracing(state->cframe, state->tracing,
                 state->tracefunc != NULL || state->profilefunc != NULL);
#endif
}

/* ---- frames, exceptions, the C stack ---- */

/* 3.12 and 3.13 count C levels, with one limit for a thread's stack of 8 MiB and more.  On smaller ones: the
 * greediest common level, sorted(key=...), takes 5 KiB and counts three.  3.11 counts them together with Python's own
 * calls, which its limit of 1,000 keeps within 2 MiB. */
#define THREAD_STACK_BYTES ((size_t)8 << 20)
#define BYTES_PER_C_LEVEL 2048

#if PY_VERSION_HEX >= 0x030E0000
/* The interpreter has its two limits one and two margins above the low end of a stack, and how much that is depends
 * on how it was compiled: taken from where they are for the thread.  Rejected:
 * PyUnstable_ThreadState_SetStackProtection(), which the first releases of 3.14 do not have. */
static void
set_limits(struct plus_pystate *state, const _PyThreadStateImpl *impl,
           const struct plus_bounds *stack)
{
    static uintptr_t margin;
    uintptr_t low = (uintptr_t)stack->low, bytes = (uintptr_t)stack->top - low;

    if (margin == 0) {
        margin = impl->c_stack_soft_limit - impl->c_stack_hard_limit;
    }
    uintptr_t step = bytes / 4 < margin ? bytes / 4 : margin; /* half of a small one is left */

    state->c_stack_top = (uintptr_t)stack->top;
    state->c_stack_hard_limit = low + step;
    state->c_stack_soft_limit = low + 2 * step;
}
#endif

static void
fresh_frames(struct plus_pystate *state, PyThreadState *tstate, const struct plus_bounds *stack)
{
    /* As the interpreter makes a thread's first chunk: without a predecessor, its first entry unused, it is
     * never given back by the interpreter itself. */
    _PyStackChunk *chunk = (_PyStackChunk *)stack->top;

    chunk->previous = NULL;
    chunk->size = (size_t)(stack->high - stack->top);
    chunk->top = 0;
    state->datastack_chunk = chunk;
    state->datastack_top = &chunk->data[1];
    state->datastack_limit = (PyObject **)stack->high;
#if PY_VERSION_HEX < 0x030D0000
    memset(&state->root, 0, sizeof(state->root));
    state->root.previous = &tstate->root_cframe;
    state->cframe = &state->root;
#elif PY_VERSION_HEX >= 0x030F0000
    state->current_frame = tstate->base_frame;
#else
    state->current_frame = NULL;
#endif
}

void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_bounds *stack, PyObject *context)
{
    fresh_frames(state, tstate, stack);
    fresh_rest(state, context);
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
    set_limits(state, (const _PyThreadStateImpl *)tstate, stack);
    state->current_executor = NULL;
#endif
}

static inline void
save(struct plus_pystate *state, PyThreadState *tstate)
{
    save_rest(state, tstate);
#if PY_VERSION_HEX < 0x030D0000
    state->cframe = tstate->cframe;
#else
    state->current_frame = tstate->current_frame;
#endif
    state->datastack_chunk = tstate->datastack_chunk;
    state->datastack_top = tstate->datastack_top;
    state->datastack_limit = tstate->datastack_limit;
    state->exc_info = tstate->exc_info;
#if PY_VERSION_HEX < 0x030C0000
    state->trash_nesting = tstate->trash_delete_nesting;
#elif PY_VERSION_HEX < 0x030D0000
    state->trash_nesting = tstate->trash.delete_nesting;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    state->c_recursion_remaining = tstate->c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;

    state->c_stack_top = impl->c_stack_top;
    state->c_stack_soft_limit = impl->c_stack_soft_limit;
    state->c_stack_hard_limit = impl->c_stack_hard_limit;
    state->current_executor = Py_XNewRef(tstate->current_executor);
#endif
}

static inline void
load(PyThreadState *tstate, struct plus_pystate *state)
{
    load_rest(state, tstate);
#if PY_VERSION_HEX < 0x030D0000
    tstate->cframe = state->cframe;
#else
    tstate->current_frame = state->current_frame;
#endif
    tstate->datastack_chunk = state->datastack_chunk;
    tstate->datastack_top = state->datastack_top;
    tstate->datastack_limit = state->datastack_limit;
    tstate->exc_info = state->exc_info;
#if PY_VERSION_HEX < 0x030C0000
    tstate->trash_delete_nesting = state->trash_nesting;
#elif PY_VERSION_HEX < 0x030D0000
    tstate->trash.delete_nesting = state->trash_nesting;
#endif
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    tstate->c_recursion_remaining = state->c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    _PyThreadStateImpl *impl = (_PyThreadStateImpl *)tstate;

    impl->c_stack_top = state->c_stack_top;
    impl->c_stack_soft_limit = state->c_stack_soft_limit;
    impl->c_stack_hard_limit = state->c_stack_hard_limit;
    tstate->current_executor = state->current_executor;
#endif
#if PY_VERSION_HEX >= 0x030F0000
    tstate->last_profiled_frame = NULL; /* a sampling profiler's note about the other stack */
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

void
plus_pystate_resumed(struct plus_pystate *state)
{
#if PY_VERSION_HEX >= 0x030E0000
    Py_CLEAR(state->current_executor);
#else
    (void)state;
#endif
}

struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_moved *moved)
{
#if PY_VERSION_HEX < 0x030D0000
    const char *at = (const char *)state->cframe; /* a variable of the evaluation loop's */

    if (at >= moved->low && at < moved->high) {
        at += moved->moved;
    }
    return at != NULL ? ((const _PyCFrame *)at)->current_frame : NULL;
#else
    (void)moved;
    return state->current_frame;
#endif
}

char *
plus_pystate_frames_end(const struct plus_pystate *state, const char *top)
{
    return (char *)state->datastack_chunk == top ? (char *)state->datastack_top : NULL;
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
    Py_CLEAR(state->current_executor); /* of one that was given up */
#endif
}
