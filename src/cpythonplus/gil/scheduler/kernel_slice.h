/* The kernel slice of a CPU-bound thread: how long it runs before a thread that wakes on its core.
 *
 * A handler that wakes on the core of a CPU-bound thread waits there for the end of that thread's kernel slice: 4 ms,
 * before it can even ask for the GIL.  From Linux 6.12 on (EEVDF) a thread may set its slice, and a thread that wakes
 * goes at once before one with a longer slice.  The processor is shared as before: a longer slice makes turns longer,
 * not more frequent.
 *
 * If the kernel lacks this or forbids it, nothing is done.  A thread of another class than SCHED_OTHER is left alone,
 * and so is one that has set as long a slice itself.  Threads inherit the slice from the thread that starts them, so a
 * new one gives it back.  A program that such a thread executes keeps it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Lengthens the thread's slice.  Returns the former slice in ns, for `give_back`; 0: nothing was changed. */
uint64_t
plus_kernel_slice_lengthen(pid_t thread);

/* Restores the thread's former slice. */
void
plus_kernel_slice_give_back(pid_t thread, uint64_t before_ns);

/* Called by a new thread: resets the slice that it inherited. */
void
plus_kernel_slice_begin(void);
