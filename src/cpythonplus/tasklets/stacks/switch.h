/* Going from one C stack to another.
 *
 * Knows nothing of Python.  Needs no lock: the two stacks must not be in use by another thread.  After a
 * fork the child goes on with the stack that called it; the others are there as copies.
 *
 * Kept over a switch, besides the registers that the platform's calling convention preserves: the
 * floating-point control words.  Not kept: the signal mask (swapcontext(3) keeps it, with a system call each
 * way: 300 ns instead of 5).
 */
#ifndef PLUS_TASKLETS_SWITCH_H
#define PLUS_TASKLETS_SWITCH_H

/* 0: there is no code for this machine, and plus_switch_refusal() says so. */
#if defined(__linux__) && (defined(__x86_64__) && !defined(__ILP32__) || defined(__aarch64__))
#define PLUS_HAS_SWITCH 1
#else
#define PLUS_HAS_SWITCH 0
#endif

/* Leaves the running stack, noting in *save where, and goes on at `to`, which an earlier call has noted
 * or plus_switch_prepare has made.  Returns when somebody switches to what *save says. */
void
plus_switch(void **save, void *to);

/* Makes a fresh stack ready: the first switch to the result calls entry() on it.  `top` is the end of the
 * stack (its highest address, 16 bytes aligned); entry must not return. */
void *
plus_switch_prepare(void *top, void (*entry)(void));

/* NULL, or why no stack of this thread may be left for another: the processor keeps a second, shadow stack of
 * return addresses for it (shadow_stack.c). */
const char *
plus_switch_refusal(void);

#endif
