/* The fields of a thread state that belong to a tasklet, exchanged at a switch.
 *
 * Only this code writes into a PyThreadState.  Callers hold the GIL and have proven PLUS_FACT_THREAD_STATE.
 */
#pragma once

#include "../facts/facts.h"

/* A C stack with room for frames above it:  low <= C stack < top <= frames < high. */
struct plus_bounds {
    char *low, *top, *high;
};

/* Memory from `low` to `high` that has been copied: it is read `moved` bytes above its addresses. */
struct plus_moved {
    const char *low, *high;
    ptrdiff_t moved;
};

/* The address for reading and writing the fields of a thread state. */
#define PLUS_TSTATE(tstate) PLUS_AT(PLUS_FACT_THREAD_STATE, tstate)

struct plus_pystate {
    PyObject *context; /* strong, or NULL */
    Py_tracefunc tracefunc, profilefunc;
    PyObject *traceobj, *profileobj; /* strong, or NULL */
    bool tracers_given;              /* for its first run: plus_pystate_fresh keeps them */
    int tracing, what_event;
    int recursion_depth; /* the used part: the limit may change meanwhile */
#if PY_VERSION_HEX < 0x030D0000
    _PyCFrame *cframe;
    _PyCFrame root; /* parent of a fresh stack's first _PyCFrame */
    int trash_nesting;
#else
    struct _PyInterpreterFrame *current_frame;
#endif
    _PyStackChunk *datastack_chunk;
    PyObject **datastack_top, **datastack_limit;
    _PyErr_StackItem *exc_info;
    _PyErr_StackItem exc_item; /* the bottom of exc_info's chain, except in the main tasklet */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    int c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    uintptr_t c_stack_top, c_stack_soft_limit, c_stack_hard_limit;
    /* The machine code that the tasklet executes, or NULL.  A strong reference while it is parked: the interpreter
     * frees invalidated code that no thread executes. */
    PyObject *current_executor;
#endif
};

/* Fill `state` for a tasklet that starts on a fresh stack: no frames, no exception, full recursion limits; the context
 * that is in `state`, and the tracers that it was given, if any. */
void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_bounds *stack);

/* Save the running state in `from` and load `to`, whose references move to the thread state. */
void
plus_pystate_exchange(PyThreadState *tstate, struct plus_pystate *from, struct plus_pystate *to);

/* Load `state` without saving the running one. */
void
plus_pystate_load(PyThreadState *tstate, struct plus_pystate *state);

/* Call this when `state` runs again after plus_pystate_exchange() left it. */
static inline void
plus_pystate_resumed(struct plus_pystate *state)
{
#if PY_VERSION_HEX >= 0x030E0000
    Py_CLEAR(state->current_executor);
#endif
}

/* Drop the context and tracers that an ended tasklet leaves in the thread state. */
void
plus_pystate_end(PyThreadState *tstate);

/* Make `context` (taken; may be NULL) the thread's current one; returns the previous one. */
PyObject *
plus_pystate_exchange_context(PyThreadState *tstate, PyObject *context);

/* Exchange only the thread's trace and profile functions with those in `state`. */
void
plus_pystate_swap_tracers(PyThreadState *tstate, struct plus_pystate *state);

/* Call this when the tracers in the state of a parked tasklet (`begun`) or of a new one have changed. */
void
plus_pystate_tracers_changed(struct plus_pystate *state, bool begun);

/* ---- reading a thread's state ---- */

/* threading.get_ident() of its thread; 0 while the thread is being started. */
static inline unsigned long
plus_pystate_ident(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->thread_id;
}

/* threading.get_native_id() of its thread. */
static inline unsigned long
plus_pystate_native_id(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->native_thread_id;
}

/* The current context, borrowed, or NULL. */
static inline PyObject *
plus_pystate_context(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->context;
}

/* For building frames in the room that the interpreter takes for its own. frames_top: the first free byte;
 * set_frames_top sets it. frames_room: the same as frames_top, but NULL if fewer than `bytes` are free. */
static inline char *
plus_pystate_frames_top(const PyThreadState *tstate)
{
    return (char *)PLUS_TSTATE(tstate)->datastack_top;
}

static inline void
plus_pystate_set_frames_top(PyThreadState *tstate, char *top)
{
    PLUS_TSTATE(tstate)->datastack_top = (PyObject **)top;
}

static inline char *
plus_pystate_frames_room(const PyThreadState *tstate, size_t bytes)
{
    char *top = plus_pystate_frames_top(tstate);

    return top != NULL && (size_t)((char *)PLUS_TSTATE(tstate)->datastack_limit - top) >= bytes
               ? top
               : NULL;
}

/* A thread's position in its chunk of frames, kept while a chunk above it is in use. */
struct plus_chunk {
    _PyStackChunk *chunk;
    PyObject **top, **limit;
};

/* Let frames be put into this memory, which stays the caller's: the interpreter does not free it. leave_chunk undoes
 * it. */
struct plus_chunk
plus_pystate_enter_chunk(PyThreadState *tstate, void *memory, size_t bytes);
void
plus_pystate_leave_chunk(PyThreadState *tstate, const struct plus_chunk *outer);

/* Add `calls` to the counter of Python calls. */
void
plus_pystate_deepen(PyThreadState *tstate, int calls);

/* Suspend or resume calls of trace and profile functions.  Only 3.11 needs it: later versions do not report our
 * helpers. */
void
plus_pystate_put_off_tracing(PyThreadState *tstate, bool off);

/* The exception that a parked state handles outside of its generators, borrowed, or NULL. */
static inline PyObject *
plus_pystate_handled(const struct plus_pystate *state)
{
    return state->exc_item.exc_value;
}

/* The number of active Python calls that count towards the recursion limit. */
static inline int
plus_pystate_depth(const PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030C0000
    return PLUS_TSTATE(tstate)->recursion_limit - PLUS_TSTATE(tstate)->recursion_remaining;
#else
    return PLUS_TSTATE(tstate)->py_recursion_limit - PLUS_TSTATE(tstate)->py_recursion_remaining;
#endif
}

/* The trace or the profile function, or NULL; and its object, borrowed. */
static inline Py_tracefunc
plus_pystate_tracefunc(const PyThreadState *tstate, bool profile)
{
    return profile ? PLUS_TSTATE(tstate)->c_profilefunc : PLUS_TSTATE(tstate)->c_tracefunc;
}

static inline PyObject *
plus_pystate_traceobj(const PyThreadState *tstate, bool profile)
{
    return profile ? PLUS_TSTATE(tstate)->c_profileobj : PLUS_TSTATE(tstate)->c_traceobj;
}

/* The hook for the first iteration or the finaliser of asynchronous generators; the thread's dict; the exception that
 * is handled outside of generators.  Borrowed, or NULL. */
static inline PyObject *
plus_pystate_asyncgen_hook(const PyThreadState *tstate, bool finalizer)
{
    return finalizer ? PLUS_TSTATE(tstate)->async_gen_finalizer
                     : PLUS_TSTATE(tstate)->async_gen_firstiter;
}

static inline PyObject *
plus_pystate_dict(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->dict;
}

static inline PyObject *
plus_pystate_exception(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->exc_state.exc_value;
}

#if PY_VERSION_HEX < 0x030C0000
/* Set only the trace function; the caller knows whose object it gets.  3.11 calls it without further notice, later
 * versions would not. */
void
plus_pystate_set_tracefunc(PyThreadState *tstate, Py_tracefunc function);
void
plus_pystate_set_parked_tracefunc(struct plus_pystate *state, Py_tracefunc function);
#endif

/* True if PyThreadState_Clear() has been called. */
static inline bool
plus_pystate_is_cleared(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->dict == NULL;
}

/* Drop the dict that a cleared thread state has got since, which would otherwise leak. */
void
plus_pystate_clear_again(PyThreadState *tstate);

/* Drop the current context. */
void
plus_pystate_drop_context(PyThreadState *tstate);

/* The field with the innermost frame; set it only while no Python function is called. */
static inline struct _PyInterpreterFrame **
plus_pystate_current_frame(PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return &PLUS_TSTATE(tstate)->cframe->current_frame;
#else
    return &PLUS_TSTATE(tstate)->current_frame;
#endif
}

/* Make the innermost frame of Python code the current one; returns the previous one, which the caller must put back.
 *
 * For PyEval_SetTrace(): 3.13.18 assumes that the current frame is one of Python code.  In a destructor it may be the
 * entry frame of an evaluation loop, whose other words are uninitialised. */
struct _PyInterpreterFrame *
plus_pystate_hide_entries(PyThreadState *tstate);

/* The innermost frame of a parked state, or NULL.  `moved`: the place of a cold stack. */
struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_moved *moved);

/* The end of the used frames in the room above the C stack that begins at `top`; NULL if some frames are elsewhere. */
char *
plus_pystate_frames_end(const struct plus_pystate *state, const char *top);

/* Drop the handled exception of a tasklet that has left its C stack. */
void
plus_pystate_left(struct plus_pystate *state);

int
plus_pystate_traverse(struct plus_pystate *state, visitproc visit, void *arg);

/* Drops the references of a state that will not be switched to again. */
void
plus_pystate_clear(struct plus_pystate *state);
