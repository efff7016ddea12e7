/* How deep the operand stack of a Python function is while one of its calls is going on.
 *
 * CPython 3.11 to 3.13 keep the stack pointer in a register of the evaluation loop while a C
 * function runs, so the frame does not tell.  The bytecode does: a depth belongs to each
 * instruction, whichever way it is reached.  From 3.14 on the frame tells how much is on the stack, and only the
 * bytecode whether the operands of the call are still part of it.
 *
 * Called with the GIL held, also while the garbage collector runs: allocates no object that it
 * tracks, runs no Python code, and leaves an exception that is set as it is.
 */
#ifndef PLUS_INTERP_STACK_DEPTH_H
#define PLUS_INTERP_STACK_DEPTH_H

#include "../../_base/compat.h"

#include <stdint.h>

enum plus_site_kind {
    PLUS_SITE_CALL, /* its operands are replaced by the result */
    PLUS_SITE_FOR,  /* a `for` asks its iterator, which stays */
    PLUS_SITE_SEND, /* `yield from` or `await`: the receiver stays */
    PLUS_SITE_EXIT, /* a `with` that an exception leaves calls __exit__, which stays */
};

/* An instruction that calls.  Indexes count from the bottom of the operand stack. */
struct plus_call_site {
    int offset; /* of the instruction, in bytes, behind its EXTENDED_ARG prefixes */
    int next;   /* of the instruction behind it, in bytes */
    int oparg;  /* of PLUS_SITE_FOR and _SEND: code units from `next` to where they go at the end */
    int depth;  /* of the stack before the call: callable and arguments are on it */
    int base;   /* index of the lowest operand: what is called, or a NULL below it */
                /* (of PLUS_SITE_EXIT what is called, and nothing is taken) */
    int kept;   /* depth while a Python function runs that was called here */
    int unpacked; /* index of the iterable in f(*iterable), or -1 */
    enum plus_site_kind kind;
};

/* Whether it is a generator or an iterator that goes on there, not a function that begins. */
static inline bool
plus_site_asks(const struct plus_call_site *site)
{
    return site->kind == PLUS_SITE_FOR || site->kind == PLUS_SITE_SEND;
}

/* The call at `offset`, in bytes.  NULL: there is no call, or its depth cannot be found.  It lives
 * as long as the code object: it is kept in the extra space that code objects have for others,
 * which goes with them.  A table keyed by address would have to prove that no other code object got
 * the same one. */
const struct plus_call_site *
plus_stack_depth_at(PyCodeObject *code, int offset);

/* The same for an offset that may lie in the cache entries of the call: that is where 3.11 and 3.12 note that a function
 * stands which called another. */
const struct plus_call_site *
plus_stack_depth_around(PyCodeObject *code, int offset);

/* The depth before whatever instruction is at `offset`, in bytes; -1: there is none, or it cannot be found.  Computed at
 * each call. */
int
plus_stack_depth_before(PyCodeObject *code, int offset);

/* Whether a watchdog may find a function there, between two instructions: the first one that it executes, a jump back, or
 * where one leads. */
bool
plus_stack_has_event(PyCodeObject *code, int offset);

/* As plus_stack_depth_before(), computed once for a code object and kept with it; and what kinds (operand_kinds.h) its
 * variables and then its operands are of. */
int
plus_stack_kinds(PyCodeObject *code, int offset, const uint8_t **kinds);

#endif
