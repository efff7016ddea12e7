/* What of an interpreter's thread state belongs to a tasklet, and the switch that exchanges it.
 *
 * There are two engines with this interface: pystate.c and switch_*.c go from one C stack to another; where there
 * is no switch_*.c for the machine, engine_greenlet.c lets greenlet do that.  The one place of the room that writes into a PyThreadState.  Layouts are those of CPython 3.11 to 3.15 as
 * compiled against; plus_pystate_refusal says where the ground differs.  All with the GIL held.
 */
#ifndef PLUS_TASKLETS_PYSTATE_H
#define PLUS_TASKLETS_PYSTATE_H

#include "../_base/compat.h"
#include "stacks.h"
#include "switch.h"

#include <stdint.h>

struct plus_pystate {
    PyObject *context; /* strong, or NULL */
    Py_tracefunc tracefunc, profilefunc;
    PyObject *traceobj, *profileobj; /* strong, or NULL */
    bool tracers_given;              /* before its first run: plus_pystate_fresh keeps them */
    int tracing, what_event;
    int recursion_depth; /* used so far: the limit may change meanwhile */
#if !PLUS_HAS_SWITCH
    PyObject *
        place; /* greenlet that it is in or was left in (strong); NULL: main that has never switched */
    bool begun; /* there */
#else
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
#ifdef __SANITIZE_ADDRESS__
    void *fake_stack;          /* AddressSanitizer's, while parked */
    const void *sanitizer_low; /* its C stack, as AddressSanitizer is to see it */
    size_t sanitizer_bytes;
#endif
#endif
};

/* What the engine is called: "assembly" or "greenlet". */
extern const char plus_pystate_engine[];

/* NULL if this interpreter's thread state is what this was compiled for, else the reason. */
const char *
plus_pystate_refusal(void);

/* Imports what the engine needs, before its first use.  NULL, or why that cannot be had. */
const char *
plus_pystate_start(void);

/* Whether the running tasklet, whose state this is, has been left by greenlet's own means: what runs in its place
 * must not switch tasklets.  Always false without greenlet. */
#if PLUS_HAS_SWITCH
#define plus_pystate_elsewhere(state, pool) false
#else
bool
plus_pystate_elsewhere(const struct plus_pystate *state, const struct plus_stack_pool *pool);
#endif

/* The thread is about to end and its tasklets have ended. */
void
plus_pystate_thread_end(void);

/* What a tasklet on a fresh stack starts with: no frames, no exception, full recursion limits; the tracers that
 * it was given, or none.  Takes over the reference to `context`. */
void
plus_pystate_fresh(struct plus_pystate *state, PyThreadState *tstate,
                   const struct plus_stack *stack, PyObject *context);

/* Saves into `from`, loads `to`, and goes from one C stack to the other; returns when switched back. */
void
plus_pystate_switch(PyThreadState *tstate, struct plus_pystate *from, void **from_sp,
                    struct plus_pystate *to, void *to_sp);

/* The first thing on a fresh stack: tells AddressSanitizer that it is there, and loads what greenlet does not. */
void
plus_pystate_arrived(void);

/* Goes to `to` without saving anything.  On greenlet it may return: then so must the function that the stack was
 * prepared with, and that is when the switch happens. */
void
plus_pystate_leave(PyThreadState *tstate, struct plus_pystate *to, void *to_sp);

/* Drops what a tasklet that has ended leaves in the thread state: its context and its tracers. */
void
plus_pystate_end(PyThreadState *tstate);

/* Loads `to` without saving: for going on with another tasklet on the same C stack. */
void
plus_pystate_load(PyThreadState *tstate, struct plus_pystate *to);

/* Makes `context` (taken; NULL: none) the thread's current one; gives what was. */
PyObject *
plus_pystate_exchange_context(PyThreadState *tstate, PyObject *context);

/* Exchanges the thread's trace and profile functions with those in `state`; nothing else of it is looked at. */
void
plus_pystate_swap_tracers(PyThreadState *tstate, struct plus_pystate *state);

/* To be called when the tracers in the state of a parked tasklet (`begun`) or of a new one have changed. */
void
plus_pystate_tracers_changed(struct plus_pystate *state, bool begun);

/* Where the innermost frame of what runs stands; setting it is for moments in which nothing is called in Python. */
static inline struct _PyInterpreterFrame **
plus_pystate_current_frame(PyThreadState *tstate)
{
#if PY_VERSION_HEX < 0x030D0000
    return &tstate->cframe->current_frame;
#else
    return &tstate->current_frame;
#endif
}

/* The innermost frame of a parked state, or NULL.  `slice`: where a cold one's stack is kept, else NULL.
 * On greenlet this is for looking only: it has linked the frames anew, past those on C stacks that are copied
 * away, and visits some of what they own by itself. */
struct _PyInterpreterFrame *
plus_pystate_frame(const struct plus_pystate *state, const struct plus_slice *slice);

/* Up to where the room for frames above the C stack is in use; NULL if the frames are (also) elsewhere. */
char *
plus_pystate_frames_end(const struct plus_pystate *state, const struct plus_stack *stack);

/* The part that both engines exchange, for them: context, tracing, recursion depth. */
void
plus_pystate_fresh_rest(struct plus_pystate *state, PyObject *context);
void
plus_pystate_save_rest(struct plus_pystate *state, PyThreadState *tstate);
void
plus_pystate_load_rest(struct plus_pystate *state, PyThreadState *tstate);

int
plus_pystate_traverse(struct plus_pystate *state, visitproc visit, void *arg);

/* Drops the references of a state that will not be switched to again. */
void
plus_pystate_clear(struct plus_pystate *state);

#endif
