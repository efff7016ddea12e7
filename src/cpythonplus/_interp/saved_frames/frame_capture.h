/* What a parked tasklet's functions, and a generator, would need to go on elsewhere.
 *
 * All with the GIL held, for whom PLUS_FACT_FRAMES and PLUS_FACT_OPERANDS hold.  Nothing is changed: whatever was
 * captured goes on as if nobody had asked.
 *
 * A captured frame is a tuple (owner, offset, kinds, values, handled):
 *
 *     owner      the function; of a generator's frame: the generator or coroutine
 *     offset     of the instruction in progress, in bytes.  In a chain that is a call; its result is what is missing.
 *                Negative, of the innermost one: ~offset is what would be executed next (3.12 and later)
 *     kinds      bytes, one for each variable (co_localsplusnames) and then for each operand that the call does not
 *                take: 'o' an object, 'n' nothing there, 'i' an index (3.15: how far a `for` has got)
 *     values     those that are objects or indexes, in that order; cells as such
 *     handled    of a generator: the exception that it handles, or None
 */
#ifndef PLUS_INTERP_FRAME_CAPTURE_H
#define PLUS_INTERP_FRAME_CAPTURE_H

#include "../frames/frames.h"

/* The C function that a chain may end in: whoever captures knows that it only gives back what it gets when the tasklet
 * goes on.  Of a `for`, the iterator.  Called with what is called. */
struct plus_capture_ends {
    bool (*call)(PyObject *callable);
    bool (*iterator)(PyObject *iterator);
};

/* Before anything is captured: a Python function of three variables, the first of which it returns after a call without
 * operands that stay.  Of frames that initialise an object it is the caller. */
int
plus_capture_prepare(PyObject *function);

/* A new tuple of captured frames, outermost first.  `called`: what the tasklet calls (its outermost function, or what
 * calls nothing else than that), NULL: known to be.  NULL with `error` that names a C function in the middle, or
 * another reason. */
PyObject *
plus_frames_capture(const struct plus_frames *frames, PyObject *called,
                    const struct plus_capture_ends *ends, PyObject *error);

/* Of a generator or coroutine that is suspended: (offset, kinds, values, handled, state), the last an int of the
 * interpreter's.  None: it has ended.  NULL with `error`. */
PyObject *
plus_generator_capture(PyObject *generator, PyObject *error);

/* What made it, new; NULL without an exception: it has ended. */
PyObject *
plus_generator_function(PyObject *generator);

#endif
