/* Switching from one C stack to another.
 *
 * Nothing here knows of Python.  No lock is needed: the two stacks must not be in use by another thread.  After a fork
 * the child continues on the calling stack; the others are copies.
 *
 * A switch preserves the registers that the platform's calling convention preserves, and the floating-point control
 * words. It does not preserve the signal mask (swapcontext(3) does, with a system call each way: 300 ns instead of 5).
 */
#pragma once

/* 0: there is no code for this machine, which plus_switch_refusal() reports. */
#if defined(__linux__) && (defined(__x86_64__) && !defined(__ILP32__) || defined(__aarch64__))
#define PLUS_HAS_SWITCH 1
#else
#define PLUS_HAS_SWITCH 0
#endif

/* Leaves the running stack, stores its place in *save, and goes on at `to`, which an earlier call has stored or
 * plus_switch_prepare() has made.  Returns at a switch to the value of *save. */
void
plus_switch(void **save, void *to);

/* Prepares a fresh stack: the first switch to the result calls entry() on it.  `top` is the end of the stack (its
 * highest address, 16 bytes aligned); entry must not return. */
void *
plus_switch_prepare(void *top, void (*entry)(void));

/* Returns NULL, or the reason why this thread's stacks may not be switched: there is no code for this processor, or it
 * keeps a shadow stack of return addresses (shadow_stack.c). */
const char *
plus_switch_refusal(void);
