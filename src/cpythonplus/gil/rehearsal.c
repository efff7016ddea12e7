/* parent                                      child (fork)
 *
 *   block all signals
 *   fork, with a pipe      ------------------->  install, probe, prove, with a second thread
 *   poll for 40 s at most  <---- one write ----  the verdict: result, reason, the GIL that was found
 *   kill, wait                                   exit at once: no destructors, nothing flushed
 *   take the child's SIGCHLD out, unless one was pending before
 *   restore the signal mask
 *   install with the child's GIL (no thread)
 *
 * The verdict is shorter than PIPE_BUF, so it arrives whole or not at all.  If the child crashes or hangs, the
 * installation is refused with a reason and the program lives on; that is the second use of a rehearsal.  If no child
 * could be made (no memory, too many processes), that says nothing, and the caller installs without a rehearsal.
 *
 * A rehearsal is useful only while libc knows of one thread (__libc_single_threaded, glibc 2.32 and later): a process
 * with a second thread has paid its price already.
 */
#define _GNU_SOURCE
#include "rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#endif
#endif
#ifndef SINGLE_THREADED
#define SINGLE_THREADED 0
#endif

/* Longer than the limits of the probe and the proof together. */
#define CHILD_LIMIT_MS 40000

/* The child's result, sent in one write of less than PIPE_BUF. */
struct verdict {
    int result;
    struct plus_gil gil;
    char reason[PLUS_REASON_SIZE];
};

bool
plus_rehearsal_useful(void)
{
    return SINGLE_THREADED != 0;
}

static void
child_main(int pipe_end, int (*rehearse)(void *, char *), void *argument)
{
    struct verdict verdict = {0};

    verdict.result = rehearse(argument, verdict.reason);
    plus_control_found(&verdict.gil);
    ssize_t written = write(pipe_end, &verdict, sizeof(verdict));
    _exit(written == (ssize_t)sizeof(verdict) ? 0 : 1);
}

/* Returns 0, or -1 with a reason if no verdict came. */
static int
listen_to(int pipe_end, struct verdict *verdict)
{
    struct pollfd poll_set = {.fd = pipe_end, .events = POLLIN};
    int ready = poll(&poll_set, 1, CHILD_LIMIT_MS);

    if (ready == 1 && read(pipe_end, verdict, sizeof(*verdict)) == (ssize_t)sizeof(*verdict)) {
        return 0;
    }
    snprintf(verdict->reason, sizeof(verdict->reason),
             "a rehearsal of the installation in a child process %s",
             ready == 0 ? "did not end" : "crashed");
    return -1;
}

static int
fork_and_listen(int (*rehearse)(void *, char *), void *argument, struct verdict *verdict)
{
    int ends[2];
    sigset_t all, old, pending;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return 1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    sigpending(&pending);
    pid_t child = fork();
    int result = child < 0 ? 1 : 0;
    if (child == 0) {
        child_main(ends[1], rehearse, argument);
    }
    close(ends[1]);
    if (child > 0) {
        if (listen_to(ends[0], verdict) < 0) {
            verdict->result = -1;
        }
        /* Reap the child and take out its SIGCHLD, but not one that was pending before. */
        bool pending_before = sigismember(&pending, SIGCHLD) == 1;
        const struct timespec now = {0};
        sigset_t one;

        kill(child, SIGKILL); /* its verdict has come, or never will */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
        if (!pending_before) {
            sigemptyset(&one);
            sigaddset(&one, SIGCHLD);
            sigtimedwait(&one, NULL, &now);
        }
    }
    close(ends[0]);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return result;
}

int
plus_rehearsal_run(int (*rehearse)(void *argument, char *reason), void *argument,
                   char reason[PLUS_REASON_SIZE])
{
    struct verdict verdict = {0};
    int rc = fork_and_listen(rehearse, argument, &verdict);

    if (rc != 0) {
        return rc;
    }
    if (verdict.result < 0) {
        memcpy(reason, verdict.reason, PLUS_REASON_SIZE);
        reason[PLUS_REASON_SIZE - 1] = '\0';
        return -1;
    }
    return plus_control_adopt(&verdict.gil, reason);
}
