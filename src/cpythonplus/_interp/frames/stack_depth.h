/* The depth of a Python function's operand stack during one of its calls.
 *
 * CPython 3.11 to 3.13 keep the stack pointer in a register of the evaluation loop while a C function runs, so the
 * frame does not tell.  The bytecode does: each instruction has one depth, whichever way it is reached.  From 3.14 on
 * the frame has the depth, and the bytecode tells whether the operands of the call are still part of it.
 *
 * GIL held, also while the garbage collector runs: allocates no object that it tracks, runs no Python code, and leaves
 * the current exception as it is.
 */
#pragma once

#include "../../_base/compat.h"

enum plus_site_kind {
    PLUS_SITE_CALL, /* its operands are replaced by the result */
    PLUS_SITE_FOR,  /* a `for` asks its iterator, which stays on the stack */
    PLUS_SITE_SEND, /* `yield from` or `await`; the receiver stays */
    PLUS_SITE_EXIT, /* a `with` that an exception leaves calls __exit__, which stays */
};

/* An instruction that calls.  Indexes count from the bottom of the operand stack. */
struct plus_call_site {
    int offset;   /* of the instruction, in bytes, behind its EXTENDED_ARG prefixes */
    int next;     /* offset of the next instruction, in bytes */
    int oparg;    /* of PLUS_SITE_FOR and _SEND: code units from `next` to the target at the end */
    int depth;    /* of the stack before the call, with callable and arguments */
    int base;     /* index of the lowest operand: the callable, or a NULL below it */
                  /* (of PLUS_SITE_EXIT the callable; no operand is taken) */
    int kept;     /* depth while a Python function that was called here runs */
    int unpacked; /* index of the iterable in f(*iterable), or -1 */
    enum plus_site_kind kind;
};

/* True if a generator or an iterator is resumed there, and no function begins. */
static inline bool
plus_site_asks(const struct plus_call_site *site)
{
    return site->kind == PLUS_SITE_FOR || site->kind == PLUS_SITE_SEND;
}

/* The call at byte `offset`; NULL if there is no call or its depth cannot be found.  The result lives as long as the
 * code object, in whose extra space it is kept.  A table keyed by address would have to prove that no other code object
 * got the same address. */
const struct plus_call_site *
plus_stack_depth_at(PyCodeObject *code, int offset);

/* Like plus_stack_depth_at(), but the offset may lie in the cache entries of the call: 3.11 and 3.12 store such an
 * offset when a function calls another. */
const struct plus_call_site *
plus_stack_depth_around(PyCodeObject *code, int offset);

/* The depth before the instruction at byte `offset`; -1 if there is no instruction or its depth cannot be found.
 * Computed at each call. */
int
plus_stack_depth_before(PyCodeObject *code, int offset);

/* How many operands are there while the thread of the function waits for the GIL at byte `offset`: those below a call's,
 * which stay when the call is over, and all of them at a jump back.  0 where neither is known. */
int
plus_stack_depth_waiting(PyCodeObject *code, int offset);

/* True if a watchdog may interrupt a function at `offset`: before the first instruction that it executes, at a jump
 * back, or at the target of a jump back. */
bool
plus_stack_has_event(PyCodeObject *code, int offset);

/* As plus_stack_depth_before(), but computed once and kept with the code object; *kinds becomes the kinds
 * (operand_kinds.h) of its variables and then its operands. */
int
plus_stack_kinds(PyCodeObject *code, int offset, const uint8_t **kinds);
