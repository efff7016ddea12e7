/* How a socket comes to be there, and goes.
 *
 *     1. folder   made with 0700, or found: no link, the user's own, closed to others; else the next place
 *     2. ask      a file of our number: somebody who accepts lives in another container, and keeps it
 *     3. listen   bind to .PID.new, chmod 0600, listen, rename to PID.sock: at each moment who finds the file finds
 *                 somebody who listens, and who may not ask cannot connect
 *     4. move up  the descriptor, to a number that the program does not expect for itself
 *     5. note     device and inode of the file: only that one is removed when it closes
 *
 * connect(2) alone tells whether somebody lives behind a file: numbers of processes are given again, and each PID
 * namespace has its own.  So a file is left over when no process of this namespace has the number and nobody accepts.
 *
 * A descriptor is used only while fstat(2) says that it is what was opened.  Between the look and the use the program
 * could still close it; what would make that impossible is a lock in the program's own close().
 *
 * shutdown(2) of the listening socket wakes the thread that polls it, in every process that has it: so the child of a
 * fork only closes its copy. */
#define _GNU_SOURCE
#include "agent_socket.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST 960 /* numbers from here on are not given again soon, and need no larger table */
#define SPARE 32    /* below the limit, so that they are not the program's last ones */

/* ---- descriptors --------------------------------------------------------------------------------- */

static int
move_up(int fd)
{
    struct rlimit limit;
    int lowest = HIGHEST;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < HIGHEST + SPARE) {
        lowest = (int)limit.rlim_cur - SPARE;
    }
    int moved = lowest > fd ? fcntl(fd, F_DUPFD_CLOEXEC, lowest) : -1;
    if (moved < 0) {
        return fd;
    }
    close(fd);
    return moved;
}

struct plus_own_fd
plus_own_fd_take(int fd)
{
    struct stat status;

    fd = move_up(fd);
    if (fstat(fd, &status) != 0) {
        close(fd);
        return PLUS_NO_FD;
    }
    return (struct plus_own_fd){fd, status.st_dev, status.st_ino};
}

bool
plus_own_fd_is_ours(const struct plus_own_fd *own)
{
    struct stat status;

    return own->fd >= 0 && fstat(own->fd, &status) == 0 && status.st_dev == own->device &&
           status.st_ino == own->inode;
}

void
plus_own_fd_close(struct plus_own_fd *own)
{
    if (plus_own_fd_is_ours(own)) {
        close(own->fd);
    }
    *own = PLUS_NO_FD;
}

/* ---- the folder ---------------------------------------------------------------------------------- */

/* Makes the folder if need be; 0 if it is the user's own and closed to others. */
static int
check_folder(const char *path)
{
    struct stat status;

    /* The umask may have taken the owner's own bits. */
    bool made = mkdir(path, 0700) == 0 && chmod(path, 0700) == 0;
    if ((!made && errno != EEXIST) || lstat(path, &status) != 0) {
        return -errno;
    }
    bool private =
        S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
    return private ? 0 : -EPERM;
}

/* Whether the one who may write into `path` is this user alone; a link may lead there. */
static bool
is_own_folder(const char *path)
{
    struct stat status;

    return path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

/* Writes the path of the folder; what does not fit, with a file's name behind it, is not taken. */
static int
find_folder(char *path, size_t size, const char *runtime_folder)
{
    const size_t file = sizeof "/.1234567890.new";

    if (runtime_folder != NULL && is_own_folder(runtime_folder)) {
        int length = snprintf(path, size, "%s/cpythonplus", runtime_folder);
        if (length > 0 && (size_t)length + file < size && check_folder(path) == 0) {
            return 0;
        }
    }
    snprintf(path, size, "/tmp/cpythonplus-%lu", (unsigned long)geteuid());
    return check_folder(path);
}

/* ---- opening and closing ------------------------------------------------------------------------- */

static struct sockaddr_un
address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

/* 1: somebody listens; 0: nobody, for sure; -1: not known. */
static int
is_alive(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -1;
    }
    int error = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    if (error == 0 || error == EAGAIN) {
        return 1;
    }
    return error == ECONNREFUSED ? 0 : -1;
}

/* Under another name first: whoever finds the file finds somebody who listens. */
static int
listen_at(int fd, const char *path, const char *first)
{
    struct sockaddr_un address = address_of(first);

    unlink(first);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return -errno;
    }
    /* Before it listens nobody gets in, whatever mode the program's umask gave it. */
    if (chmod(first, 0600) != 0 || listen(fd, 4) != 0 || rename(first, path) != 0) {
        int error = -errno;
        unlink(first);
        return error;
    }
    return 0;
}

int
plus_agent_socket_open(struct plus_agent_socket *agent, const char *runtime_folder)
{
    char folder[sizeof agent->path - sizeof "/.1234567890.new"], first[sizeof agent->path];
    struct stat status;
    int error = find_folder(folder, sizeof folder, runtime_folder);

    agent->listening = PLUS_NO_FD;
    if (error < 0) {
        return error;
    }
    snprintf(agent->path, sizeof agent->path, "%s/%d.sock", folder, (int)getpid());
    snprintf(first, sizeof first, "%s/.%d.new", folder, (int)getpid());
    /* Processes of two containers may have one number and share the folder. */
    if (lstat(agent->path, &status) == 0 && is_alive(agent->path) == 1) {
        return -EADDRINUSE;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    error = listen_at(fd, agent->path, first);
    if (error < 0) {
        close(fd);
        return error;
    }
    agent->listening = plus_own_fd_take(fd);
    bool found = lstat(agent->path, &status) == 0;
    agent->device = found ? status.st_dev : 0;
    agent->inode = found ? status.st_ino : 0;
    return agent->listening.fd < 0 ? -EBADF : 0;
}

void
plus_agent_socket_close(struct plus_agent_socket *agent)
{
    struct stat status;

    plus_own_fd_close(&agent->listening);
    if (lstat(agent->path, &status) == 0 && status.st_dev == agent->device &&
        status.st_ino == agent->inode) {
        unlink(agent->path);
    }
}

void
plus_agent_socket_forget(struct plus_agent_socket *agent)
{
    plus_own_fd_close(&agent->listening); /* never shutdown: it is the parent's socket, too */
}

bool
plus_agent_socket_wake(const struct plus_agent_socket *agent)
{
    struct stat status;

    if (plus_own_fd_is_ours(&agent->listening)) {
        return shutdown(agent->listening.fd, SHUT_RDWR) == 0;
    }
    /* The number is gone, but whoever polls keeps the socket alive, and a connection wakes him. */
    return lstat(agent->path, &status) == 0 && status.st_ino == agent->inode &&
           is_alive(agent->path) == 1;
}

bool
plus_agent_socket_admits(int client)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           length == sizeof peer && (peer.uid == geteuid() || peer.uid == 0);
}

/* ---- what others left ---------------------------------------------------------------------------- */

static bool
is_left_over(const char *folder, const char *name, char *path, size_t size)
{
    char *end;
    long pid = strtol(name, &end, 10);

    if (end == name || strcmp(end, ".sock") != 0 || pid <= 0 || pid == getpid()) {
        return false;
    }
    snprintf(path, size, "%s/%s", folder, name);
    /* In another PID namespace it may live all the same: only its socket knows. */
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH && is_alive(path) == 0;
}

void
plus_agent_socket_clean(const struct plus_agent_socket *agent)
{
    /* Not readdir(3): it allocates, and this may run between fork and the rest of the child. With numbers of 64
     * bits, which the build asks for, the C library's record is the kernel's; musl has no other. */
    static_assert(offsetof(struct dirent, d_name) == 19, "the record of getdents64(2)");
    char entries[4096] __attribute__((aligned(8)));
    char folder[sizeof agent->path], path[sizeof agent->path + 256];

    snprintf(folder, sizeof folder, "%s", agent->path);
    *strrchr(folder, '/') = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    for (long got; fd >= 0 && (got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0;) {
        for (long at = 0; at < got;) {
            const struct dirent *entry = (const struct dirent *)(entries + at);
            if (is_left_over(folder, entry->d_name, path, sizeof path)) {
                unlink(path);
            }
            at += entry->d_reclen;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}
