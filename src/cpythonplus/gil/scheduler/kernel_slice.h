/* How long the kernel lets a thread that computes go on before one that wakes.
 *
 * A handler that wakes on the core where a job computes waits for it there, until the job's slice in the
 * kernel has passed: 4 ms, before it can even ask for the GIL.  From Linux 6.12 on (EEVDF) a thread may name
 * its slice, and one that wakes goes at once before one with a longer slice.  The processor is shared as
 * before: a longer slice makes turns longer, not more of them.
 *
 * Where the kernel knows nothing of it, or does not allow it, nothing is done.  A thread of another class
 * than SCHED_OTHER is left alone, and so is one that has asked for as long a slice itself.  Threads inherit
 * the slice from whoever starts them, so a new one gives it back.  A program that one executes keeps it.
 */
#ifndef PLUS_GIL_KERNEL_SLICE_H
#define PLUS_GIL_KERNEL_SLICE_H

#include <stdint.h>
#include <sys/types.h>

/* Of the thread: makes its slice long.  Returns what it was, in ns, for `give_back`; 0: it is as it was. */
uint64_t
plus_kernel_slice_lengthen(pid_t thread);

/* Makes its slice what it was. */
void
plus_kernel_slice_give_back(pid_t thread, uint64_t before_ns);

/* Of the calling thread, which is new: gives back what it inherited. */
void
plus_kernel_slice_begin(void);

#endif
