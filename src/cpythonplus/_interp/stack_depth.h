/* How deep the operand stack of a Python function is while one of its calls is going on.
 *
 * CPython 3.11 to 3.13 keep the stack pointer in a register of the evaluation loop while a C
 * function runs, so the frame does not tell.  The bytecode does: a depth belongs to each
 * instruction, whichever way it is reached.  From 3.14 on the frame tells, and this file is empty.
 *
 * Called with the GIL held, also while the garbage collector runs: allocates no object that it
 * tracks, runs no Python code, and leaves an exception that is set as it is.
 */
#ifndef PLUS_INTERP_STACK_DEPTH_H
#define PLUS_INTERP_STACK_DEPTH_H

#include "../_base/compat.h"

#if PY_VERSION_HEX < 0x030E0000

/* An instruction that calls, a `for` that asks its iterator among them.  Indexes count from the
 * bottom of the operand stack. */
struct plus_call_site {
    int offset; /* of the instruction, in bytes, behind its EXTENDED_ARG prefixes */
    int depth;  /* of the stack before the call: callable and arguments are on it */
    int base;   /* index of the lowest operand; it is replaced by a call's result, not by a `for` */
    int unpacked; /* index of the iterable in f(*iterable), or -1 */
    bool is_for;
};

/* The call at `offset`, in bytes.  NULL: there is no call, or its depth cannot be found.  It lives
 * as long as the code object: it is kept in the extra space that code objects have for others,
 * which goes with them.  A table keyed by address would have to prove that no other code object got
 * the same one. */
const struct plus_call_site *
plus_stack_depth_at(PyCodeObject *code, int offset);

#endif
#endif
