/* The copy:
 *
 *     it begins   clone() with the GIL held, or the world stopped: no other thread is inside the interpreter.  Hooks of
 *                 os.register_at_fork() and pthread_atfork() are not called: they are for children that run the program
 *     it works    without Python code, so it never gives up the GIL, which threads that do not exist may wait for; with
 *                 memory of its own (copy_memory.h), also for Python's allocators; signals are blocked; if memory is
 *                 short the kernel ends it first (oom_score_adj); it ends with its parent, and after a time limit
 *     it ends     _exit(): nothing of the program is flushed or torn down
 *
 * Why not fork(): it calls the hooks of pthread_atfork().  Those of gRPC write to the program's stderr, and start
 * threads in the child.  The C library gives these the stacks of the program's threads, with the frames that the copy
 * reads.  The other work of fork() is useless here: the locks of malloc(), whose state an own region makes irrelevant,
 * and the C library's data on the thread.
 *
 * The answer is its length and that many bytes, so it does no harm if another child of the program has inherited an end
 * of the pipe.
 *
 * The copy ends without SIGCHLD.  So the program gets no signal, and a wait() for its own children does not get this one,
 * which needs __WALL.
 */
#include "heap_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../_base/memory/copy_memory.h"
#include "../_base/process/clock.h"
#include "../_interp/objects/gc_objects.h"
#include "../_interp/objects/world.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* since Linux 5.9; before, descriptors stay open */
#endif
#define MOST_BYTES ((size_t)256 << 20)

int
plus_heap_copy_write(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        ssize_t written = write(fd, at, bytes);

        if (written < 0 && errno != EINTR) {
            return -1;
        }
        at += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* ---- memory --------------------------------------------------------------------------------------- */

static void *
take(void *context, size_t bytes)
{
    (void)context;
    return plus_malloc(bytes);
}

static void *
take_zeroed(void *context, size_t count, size_t item_bytes)
{
    (void)context;
    return plus_calloc(count, item_bytes);
}

static void *
resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return plus_realloc(block, bytes);
}

static void
give_back(void *context, void *block)
{
    (void)context;
    plus_free(block);
}

static int
use_own_memory(size_t most_bytes)
{
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM,
                                                   PYMEM_DOMAIN_OBJ};
    PyMemAllocatorEx own = {NULL, take, take_zeroed, resize, give_back};

    if (plus_copy_memory_begin(most_bytes) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
        PyMem_SetAllocator(domains[i], &own);
    }
    return 0;
}

/* ---- the copy ------------------------------------------------------------------------------------- */

static void
settle_in(int seconds)
{
    static const int usual[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    sigset_t all;
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        (void)signal(usual[i], SIG_DFL);
    }
    sigfillset(&all);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        sigdelset(&all, usual[i]);
    }
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)alarm((unsigned)seconds);
    PyGC_Disable();
}

static int
by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

_Noreturn static void
be_the_copy(int fd, PyObject *(*work)(void *), void *arg, const int keep[2], int seconds,
            size_t most_bytes)
{
    /* Close all other descriptors: a connection of the program must end when the program closes it, not when the
     * copy ends. */
    int kept[] = {fd, keep[0], keep[1]};
    unsigned from = 0;

    qsort(kept, 3, sizeof kept[0], by_number);
    for (size_t i = 0; i < 3; i++) {
        if (kept[i] >= 0) {
            if ((unsigned)kept[i] > from) {
                (void)syscall(SYS_close_range, from, (unsigned)kept[i] - 1, 0);
            }
            from = (unsigned)kept[i] + 1;
        }
    }
    (void)syscall(SYS_close_range, from, ~0U, 0);
    settle_in(seconds);
    PyObject *result = use_own_memory(most_bytes) < 0 ? NULL : work(arg);

    if (result == NULL || !PyBytes_CheckExact(result)) {
        _exit(1);
    }
    uint64_t bytes = (uint64_t)PyBytes_GET_SIZE(result);
    int failed = plus_heap_copy_write(fd, &bytes, sizeof bytes);

    if (!failed) {
        failed = plus_heap_copy_write(fd, PyBytes_AS_STRING(result), bytes);
    }
    _exit(failed ? 2 : 0);
}

struct beginning {
    const int *pipe_fds;
    PyObject *(*work)(void *);
    void *arg;
    const int *keep;
    int seconds;
    size_t most_bytes;
    int error; /* errno */
};

/* Make the copy while the other threads stand still; the copy itself does not return. */
static int
begin(void *arg)
{
    struct beginning *it = arg;
    pid_t pid = (pid_t)syscall(SYS_clone, 0 /* no signal at its end */, 0, 0, 0, 0);

    if (pid == 0) {
        close(it->pipe_fds[0]);
        be_the_copy(it->pipe_fds[1], it->work, it->arg, it->keep, it->seconds, it->most_bytes);
    }
    it->error = errno;
    return (int)pid;
}

/* 0; -1 if the other side has ended or the deadline has passed. */
static int
read_all(int fd, void *data, size_t bytes, uint64_t deadline_ns)
{
    char *at = data;

    while (bytes > 0) {
        uint64_t now_ns = plus_now_ns();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int left_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / 1000000) + 1 : 0;
        int ready = left_ms == 0 ? 0 : poll(&wait, 1, left_ms);
        ssize_t got = ready > 0 ? read(fd, at, bytes) : ready;

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return -1;
        }
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* The copy's answer, from malloc; NULL if there is none. */
static char *
receive(int fd, uint64_t *bytes, uint64_t deadline_ns)
{
    char *data = NULL;

    if (read_all(fd, bytes, sizeof *bytes, deadline_ns) == 0 && *bytes <= MOST_BYTES) {
        data = malloc(*bytes + 1);
    }
    if (data != NULL && read_all(fd, data, *bytes, deadline_ns) < 0) {
        free(data);
        data = NULL;
    }
    return data;
}

/* The status of waitpid(); 0 if it is unknown, for the program may have waited for all of its children with __WALL. */
static int
end_copy(pid_t pid, bool answered)
{
    int status = 0;

    /* If the copy has ended already, keep its own signal; if the program has waited for it, its number may be
     * reused. */
    if (!answered && waitpid(pid, &status, WNOHANG | __WALL) != 0) {
        return status;
    }
    if (!answered) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {
    }
    return answered ? 0 : status;
}

static void
raise_failure(int status, bool late, int seconds)
{
    if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
        PyErr_Format(PyExc_RuntimeError, "the copy of the process took longer than %d seconds",
                     seconds);
    }
    else if (WIFSIGNALED(status)) {
        PyErr_Format(PyExc_RuntimeError, "the copy of the process was ended by signal %d%s",
                     WTERMSIG(status), WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    }
    else {
        PyErr_SetString(PyExc_RuntimeError, "the copy of the process ended early (out of memory?)");
    }
}

PyObject *
plus_heap_copy(PyObject *(*work)(void *), void *arg, const int keep[2], int seconds,
               size_t most_bytes, uint64_t *pause_ns)
{
    int pipe_fds[2];
    uint64_t start = plus_now_ns(), bytes = 0;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (plus_gc_objects_begin() <
        0) { /* a copy runs no Python code, so it cannot make the listing */
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        return PyErr_NoMemory();
    }
    struct beginning it = {pipe_fds, work, arg, keep, seconds, most_bytes, 0};
    pid_t pid = plus_world_stopped(begin, &it);
    int error = it.error;

    *pause_ns = plus_now_ns() - start;
    plus_gc_objects_end();
    char *data = NULL;
    int status = 0;
    bool late = false;

    close(pipe_fds[1]);
    if (pid > 0) {
        Py_BEGIN_ALLOW_THREADS;
        uint64_t deadline_ns = start + (uint64_t)seconds * PLUS_NS_PER_S;
        data = receive(pipe_fds[0], &bytes, deadline_ns);
        late = plus_now_ns() >= deadline_ns;
        status = end_copy(pid, data != NULL);
        Py_END_ALLOW_THREADS;
    }
    close(pipe_fds[0]);
    if (pid < 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (data == NULL) {
        raise_failure(status, late, seconds);
        return NULL;
    }
    PyObject *result = PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes);

    free(data);
    return result;
}
