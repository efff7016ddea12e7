/* The state of a parked tasklet's functions, or of a generator, for going on elsewhere.
 *
 * Callers hold the GIL and have proven PLUS_FACT_FRAMES and PLUS_FACT_OPERANDS.  Capturing changes nothing: the
 * captured functions go on as before.
 *
 * A captured frame is a tuple (owner, offset, kinds, values, handled):
 *
 *     owner      the function; for a generator's frame the generator or coroutine
 *     offset     of the instruction in progress, in bytes.  In a chain that is a call whose result is missing.
 *                The innermost frame may have ~offset of the next instruction instead (3.12 and later): it is negative
 *     kinds      bytes, one for each variable (co_localsplusnames) and then for each operand that the call does not
 *                take: 'o' an object, 'n' an empty slot, 'i' an index (3.15: the position of a `for`)
 *     values     the objects and indexes, in that order; a cell is captured as the cell
 *     handled    the exception that a generator handles, or None
 */
#pragma once

#include "../frames/frames.h"

/* The C function that a chain may end in: the caller knows that it only returns what it gets when the tasklet goes on.
 * `iterator` is asked for the iterator of a `for`, `call` for a callable. */
struct plus_capture_ends {
    bool (*call)(PyObject *callable);
    bool (*iterator)(PyObject *iterator);
};

/* Before it, frames below an __init__ that a class called are refused. `function` is a Python function of three variables that makes a call without operands
 * that stay, and then returns its first variable.  Its frame becomes the caller of an __init__ that a class called. */
int
plus_capture_prepare(PyObject *function);

/* A new tuple of captured frames, outermost first. `called`: the callable that the tasklet calls (its outermost
 * function, or an object that only calls that); NULL if it need not be checked.  NULL with `error`, which names a C
 * function in the middle or another reason. */
PyObject *
plus_frames_capture(const struct plus_frames *frames, PyObject *called,
                    const struct plus_capture_ends *ends, PyObject *error);

/* The state of a suspended generator or coroutine: (offset, kinds, values, handled, state), the last one the
 * interpreter's gi_frame_state.  None if it has ended.  NULL with `error`. */
PyObject *
plus_generator_capture(PyObject *generator, PyObject *error);

/* The function that made the generator, a new reference; NULL without an exception if the generator has ended. */
PyObject *
plus_generator_function(PyObject *generator);
