/* An address that was read from a structure of the interpreter may be invalid.  The kernel reads from it: if nothing is
 * mapped there, the call fails.
 *
 *     process_vm_readv(own pid)    one call, any number of ranges; needs no right to trace, for it is this process
 *         | EPERM, ENOSYS, EACCES: a seccomp profile, or a kernel without it
 *         v
 *     pipe: writev, then read      the kernel copies into the pipe, so a bad address is EFAULT.  Four calls; a pipe
 *                                  holds 64 KiB, and is asked not to block, so that more is an error
 *
 * All or nothing: a short count means that a range was not mapped to its end.  Memory that another thread changes
 * meanwhile may be read half: callers hold the GIL, or check the result.
 *
 * The way that works is not remembered: a refusal costs one system call, and a profile may be installed later.
 *
 * Rejected: a SIGSEGV handler with a jump (the handler is the program's, and would get other threads' faults);
 * mincore() or /proc/self/maps before reading (the answer may be outdated); /proc/self/mem, which is missing without
 * /proc, and may be refused by the same profile. */
#define _GNU_SOURCE
#include "own_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static bool
read_parts(const struct iovec *there, size_t count, void *copy, size_t total_bytes)
{
    struct iovec here = {copy, total_bytes};
    ssize_t got = process_vm_readv(getpid(), &here, 1, there, count, 0);

    /* The errors of a seccomp profile, and of a kernel, that lacks a system call. */
    if (got < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
            return false;
        }
        bool all = writev(ends[1], there, (int)count) == (ssize_t)total_bytes &&
                   read(ends[0], copy, total_bytes) == (ssize_t)total_bytes;
        close(ends[0]);
        close(ends[1]);
        return all;
    }
    return got == (ssize_t)total_bytes;
}

bool
plus_read_memory(uintptr_t address, void *copy, size_t count_bytes)
{
    struct iovec there = {(void *)address, count_bytes};

    return read_parts(&there, 1, copy, count_bytes);
}

bool
plus_read_ranges(const struct plus_range *ranges, size_t count, void *copy)
{
    struct iovec there[PLUS_RANGES_AT_ONCE];
    size_t total_bytes = 0;

    if (count == 0 || count > PLUS_RANGES_AT_ONCE) {
        return count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        there[i] = (struct iovec){(void *)ranges[i].start, ranges[i].count_bytes};
        total_bytes += ranges[i].count_bytes;
    }
    return read_parts(there, count, copy, total_bytes);
}

bool
plus_memory_is_readable(void)
{
    int here = 1, copy = 0;

    return plus_read_memory((uintptr_t)&here, &copy, sizeof copy) && copy == here;
}
