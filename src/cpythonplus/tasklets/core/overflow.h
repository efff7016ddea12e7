/* A clear last word when a tasklet runs over the end of its C stack.
 *
 * The interpreter's own limits raise RecursionError first; this is for C code that it does not count (a parser,
 * a large array).  All with the GIL held.
 */
#ifndef PLUS_TASKLETS_OVERFLOW_H
#define PLUS_TASKLETS_OVERFLOW_H

/* Puts a handler for SIGSEGV in front of what is there, once for the process: a fault in a guard is named on
 * standard error, and then, as any other, left to who was there before (faulthandler; the kernel). */
void
plus_overflow_install(void);

/* Has it install none; only before the first scheduler is made. */
void
plus_overflow_decline(void);

/* Gives the calling thread a stack for signal handlers, if it has none: the tasklet's own is full.  Returns
 * what plus_overflow_thread_end takes, or NULL. */
void *
plus_overflow_thread_begin(void);
void
plus_overflow_thread_end(void *signal_stack);

#endif
