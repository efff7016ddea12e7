/* A clear last message when a tasklet runs over the end of its C stack.
 *
 * The interpreter's own limits raise RecursionError first; the message is for C code that they do not count (a parser,
 * a large array).  Called with the GIL held.
 */
#pragma once

/* Installs a handler for SIGSEGV, once for the process.  It reports a fault in a guard on standard error, and then
 * leaves it, as any other fault, to the former handler (faulthandler; the kernel). */
void
plus_overflow_install(void);

/* Makes plus_overflow_install() do nothing; call it before the first scheduler is made. */
void
plus_overflow_decline(void);

/* Gives the calling thread a stack for signal handlers, if it has none: the tasklet's own is full at an overrun.
 * Returns the argument for plus_overflow_thread_end(), or NULL. */
void *
plus_overflow_thread_begin(void);
void
plus_overflow_thread_end(void *signal_stack);
