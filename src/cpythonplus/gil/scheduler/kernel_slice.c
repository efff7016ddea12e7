/* A thread's slice in the kernel is its `runtime` in sched_setattr(2), which for SCHED_OTHER counts from Linux 6.12 on.
 *
 * Lengthening: read the attributes; if the class is SCHED_OTHER and the slice shorter than ours, write it, with all
 * other attributes as they were, which needs no privilege.  What it was is returned, and kept by the caller (sched.c,
 * with the GIL's mutex).  Giving back: only where the slice is still ours, so one that the program has set since stays.
 *
 * Threads inherit the slice.  Once any was lengthened (in_use), a thread that makes its record gives back what it may
 * have inherited: to 0, the kernel's default.
 *
 * A kernel that knows nothing of it says so by an error or by a slice of 0, and one that does not allow it by an error:
 * then it is not asked again, by any thread (unavailable).  ESRCH is no such answer: the thread has ended meanwhile.
 */
#define _GNU_SOURCE
#include "kernel_slice.h"

#include "../../_base/process/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A turn of the policy: who waits for that long is asked for by others anyway. */
#define LONG_NS (10 * PLUS_NS_PER_MS)

/* The first version of the kernel's structure; C libraries before glibc 2.41 do not have it. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

static _Atomic bool unavailable; /* the kernel said so once */
static _Atomic bool in_use;      /* some thread has, or had, a long one */

/* A thread may end meanwhile; anything else would come again. */
static void
note_refusal(void)
{
    if (errno != ESRCH) {
        atomic_store_explicit(&unavailable, true, memory_order_relaxed);
    }
}

/* Returns whether it is a thread whose slice can be told. */
static bool
read_attributes(pid_t thread, struct attributes *found)
{
    if (atomic_load_explicit(&unavailable, memory_order_relaxed)) {
        return false;
    }
    if (syscall(SYS_sched_getattr, thread, found, sizeof(*found), 0) != 0) {
        note_refusal();
        return false;
    }
    if (found->policy == SCHED_OTHER && found->runtime_ns == 0) { /* before 6.12 */
        atomic_store_explicit(&unavailable, true, memory_order_relaxed);
        return false;
    }
    return found->policy == SCHED_OTHER;
}

/* The other attributes are given as they are: that needs no privilege. */
static bool
write_slice(pid_t thread, struct attributes *attributes, uint64_t slice_ns)
{
    attributes->size = sizeof(*attributes);
    attributes->runtime_ns = slice_ns;
    if (syscall(SYS_sched_setattr, thread, attributes, 0) == 0) {
        return true;
    }
    note_refusal();
    return false;
}

uint64_t
plus_kernel_slice_lengthen(pid_t thread)
{
    struct attributes attributes = {0};

    if (!read_attributes(thread, &attributes) || attributes.runtime_ns >= LONG_NS) {
        return 0;
    }
    uint64_t before_ns = attributes.runtime_ns;
    atomic_store_explicit(&in_use, true, memory_order_relaxed);
    return write_slice(thread, &attributes, LONG_NS) ? before_ns : 0;
}

void
plus_kernel_slice_give_back(pid_t thread, uint64_t before_ns)
{
    struct attributes attributes = {0};

    if (read_attributes(thread, &attributes) && attributes.runtime_ns == LONG_NS) {
        write_slice(thread, &attributes, before_ns);
    }
}

void
plus_kernel_slice_begin(void)
{
    if (atomic_load_explicit(&in_use, memory_order_relaxed)) {
        plus_kernel_slice_give_back(0, 0);
    }
}
