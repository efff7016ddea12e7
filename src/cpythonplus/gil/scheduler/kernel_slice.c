/* A thread's slice in the kernel is its `runtime` in sched_setattr(2), which SCHED_OTHER heeds from Linux 6.12 on.
 *
 * Lengthening: read the attributes; if the class is SCHED_OTHER and the slice shorter than ours, write ours, and leave
 * the other attributes as they are, which needs no privilege.  The caller (sched.c, under the GIL's mutex) keeps the
 * former slice.  Giving back: write the former slice only if ours is still set, so that a slice that the program has
 * set since stays.
 *
 * Threads inherit the slice.  Once any slice was lengthened (in_use), a thread that makes its record resets a slice
 * that it may have inherited to 0, the kernel's default.
 *
 * A kernel without this feature reports an error or a slice of 0, and a kernel that forbids it reports an error; then
 * no thread tries again (unavailable).  ESRCH is an exception: it means that the thread has ended.
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

/* One turn of the policy: other threads ask for the GIL of one that goes on for longer anyway. */
#define LONG_NS (10 * PLUS_NS_PER_MS)

/* The first version of the kernel's structure; C libraries before glibc 2.41 do not have it. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

static _Atomic bool unavailable; /* the kernel refused once */
static _Atomic bool in_use;      /* a slice was lengthened at some time */

/* ESRCH means that the thread has ended; any other error would come again. */
static void
note_refusal(void)
{
    if (errno != ESRCH) {
        atomic_store_explicit(&unavailable, true, memory_order_relaxed);
    }
}

/* Returns true if the thread is SCHED_OTHER and its slice is known. */
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

/* Writes the other attributes unchanged, which needs no privilege. */
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
