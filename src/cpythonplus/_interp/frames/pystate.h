/* What of a thread state belongs to a tasklet, exchanged at a switch.
 *
 * The one place that writes into a PyThreadState.  For whom PLUS_FACT_THREAD_STATE holds.  All with the GIL held.
 */
#ifndef PLUS_INTERP_PYSTATE_H
#define PLUS_INTERP_PYSTATE_H

#include "../facts/facts.h"

#include <stddef.h>
#include <stdint.h>

/* A C stack with room for frames above it:  low <= C stack < top <= frames < high. */
struct plus_bounds {
    char *low, *top, *high;
};

/* Memory that is read `moved` bytes further on than where its addresses say. */
struct plus_moved {
    const char *low, *high;
    ptrdiff_t moved;
};

/* Where the fields of a thread state are read and written. */
#define PLUS_TSTATE(tstate) PLUS_AT(PLUS_FACT_THREAD_STATE, tstate)

struct plus_pystate {
    PyObject *context; /* strong, or NULL */
    Py_tracefunc tracefunc, profilefunc;
    PyObject *traceobj, *profileobj; /* strong, or NULL */
    bool tracers_given;              /* before its first run: plus_pystate_fresh keeps them */
    int tracing, what_event;
    int recursion_depth; /* used so far: the limit may change meanwhile */
#if PY_VERSION_HEX < 0x030D0000
    _PyCFrame *cframe;
    _PyCFrame root; /* what a fresh stack's first evaluation links to */
    int trash_nesting;
#else
    struct _PyInterpreterFrame *current_frame;
#endif
    _PyStackChunk *datastack_chunk;
    PyObject **datastack_top, **datastack_limit;
    _PyErr_StackItem *exc_info;
    _PyErr_StackItem exc_item; /* the bottom of exc_info's chain, unless main */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    int c_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030E0000
    uintptr_t c_stack_top, c_stack_soft_limit, c_stack_hard_limit;
    /* The machine code that the tasklet is in, NULL: none.  Strong while it is parked: when code is no longer valid the
     * interpreter frees what no thread is in. */
    PyObject *current_executor;
#endif
};

/* What a tasklet on a fresh stack starts with: no frames, no exception, full recursion limits; the context
 * that is in `state`, and the tracers that it was given, or none. */
void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_bounds *stack);

/* Notes in `from` what runs, and makes `to` what runs: what that refers to is the thread state's from then on. */
void
plus_pystate_exchange(PyThreadState *tstate, struct plus_pystate *from, struct plus_pystate *to);

/* The same without noting what runs. */
void
plus_pystate_load(PyThreadState *tstate, struct plus_pystate *state);

/* To be called when `state` runs again, after plus_pystate_exchange() left it. */
static inline void
plus_pystate_resumed(struct plus_pystate *state)
{
#if PY_VERSION_HEX >= 0x030E0000
    Py_CLEAR(state->current_executor);
#else
    (void)state;
#endif
}

/* Drops what a tasklet that has ended leaves in the thread state: its context and its tracers. */
void
plus_pystate_end(PyThreadState *tstate);

/* Makes `context` (taken; NULL: none) the thread's current one; gives what was. */
PyObject *
plus_pystate_exchange_context(PyThreadState *tstate, PyObject *context);

/* Exchanges the thread's trace and profile functions with those in `state`; nothing else of it is looked at. */
void
plus_pystate_swap_tracers(PyThreadState *tstate, struct plus_pystate *state);

/* To be called when the tracers in the state of a parked tasklet (`begun`) or of a new one have changed. */
void
plus_pystate_tracers_changed(struct plus_pystate *state, bool begun);

/* ---- reading a thread's state ---- */

/* threading.get_ident() of its thread; 0: the thread is being started. */
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

/* Borrowed, or NULL. */
static inline PyObject *
plus_pystate_context(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->context;
}

/* For frames that are built where the interpreter takes room for its own: the first free byte there, which is also set;
 * the same, NULL if less than so many bytes are free. */
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

/* The place of a thread's frames while those of another chunk are on top of them. */
struct plus_chunk {
    _PyStackChunk *chunk;
    PyObject **top, **limit;
};

/* Has frames lie in this memory, which stays the caller's: the interpreter does not free it.  The other gives back. */
struct plus_chunk
plus_pystate_enter_chunk(PyThreadState *tstate, void *memory, size_t bytes);
void
plus_pystate_leave_chunk(PyThreadState *tstate, const struct plus_chunk *outer);

/* Counts so many calls in Python more. */
void
plus_pystate_deepen(PyThreadState *tstate, int calls);

/* Whether trace and profile functions are called; those of 3.11, as later versions do not tell them of our helpers. */
void
plus_pystate_put_off_tracing(PyThreadState *tstate, bool off);

/* The exception that a parked state handles outside of its generators, borrowed, or NULL. */
static inline PyObject *
plus_pystate_handled(const struct plus_pystate *state)
{
    return state->exc_item.exc_value;
}

/* Calls in Python that have not returned, as they count towards the recursion limit. */
static inline int
plus_pystate_depth(const PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030C0000
    return PLUS_TSTATE(tstate)->recursion_limit - PLUS_TSTATE(tstate)->recursion_remaining;
#else
    return PLUS_TSTATE(tstate)->py_recursion_limit - PLUS_TSTATE(tstate)->py_recursion_remaining;
#endif
}

/* The trace or the profile function, NULL: none; and its object, borrowed. */
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

/* The first one to be told of an asynchronous generator, or the one that ends it; the names of the thread's own data; the
 * exception that it handles outside of generators.  Borrowed, or NULL. */
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
/* Exchanges the trace function alone: whose object it is knows the caller.  3.11 calls it without having been told,
 * later versions would not. */
void
plus_pystate_set_tracefunc(PyThreadState *tstate, Py_tracefunc function);
void
plus_pystate_set_parked_tracefunc(struct plus_pystate *state, Py_tracefunc function);
#endif

/* Whether PyThreadState_Clear() has been here. */
static inline bool
plus_pystate_is_cleared(const PyThreadState *tstate)
{
    return PLUS_TSTATE(tstate)->dict == NULL;
}

/* What a cleared one has got since, which nobody else would free. */
void
plus_pystate_clear_again(PyThreadState *tstate);

/* Drops the context that runs. */
void
plus_pystate_drop_context(PyThreadState *tstate);

/* Where the innermost frame of what runs stands; setting it is for moments in which nothing is called in Python. */
static inline struct _PyInterpreterFrame **
plus_pystate_current_frame(PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return &PLUS_TSTATE(tstate)->cframe->current_frame;
#else
    return &PLUS_TSTATE(tstate)->current_frame;
#endif
}

/* Makes the innermost frame of Python code the current one, and gives the one that was, which is to be put back.
 *
 * For PyEval_SetTrace(): 3.13.18 takes the current frame for one of Python code.  Where a destructor calls it, that may be
 * the entry of an evaluation loop, whose other words nobody has set. */
struct _PyInterpreterFrame *
plus_pystate_hide_entries(PyThreadState *tstate);

/* The innermost frame of a parked state, or NULL.  `moved`: where a cold one's stack is kept. */
struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_moved *moved);

/* Up to where the room for frames above the C stack that begins at `top` is in use; NULL if the frames are (also)
 * elsewhere. */
char *
plus_pystate_frames_end(const struct plus_pystate *state, const char *top);

/* Of one that has left its C stack: lets go of the exception that it handles. */
void
plus_pystate_left(struct plus_pystate *state);

int
plus_pystate_traverse(struct plus_pystate *state, visitproc visit, void *arg);

/* Drops the references of a state that will not be switched to again. */
void
plus_pystate_clear(struct plus_pystate *state);

#endif
