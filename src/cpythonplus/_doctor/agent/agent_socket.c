/* Opening and closing of the socket.
 *
 *     1. folder   made with 0700, or found: no link, the user's own, closed to others; else the next place
 *     2. ask      if a file has our process id and its socket accepts, it is of another container, and stays
 *     3. listen   bind to .PID.new, chmod 0600, listen, rename to PID.sock: the file always has a listener, and other
 *                 users can never connect
 *     4. move up  if the descriptor is in the program's table: to a number that the program does not expect for itself
 *     5. note     device and inode of the file: only that file is removed when the socket closes
 *
 * Only connect(2) tells whether a process lives behind a file: process ids are reused, and each PID namespace has its
 * own.  A file is left over if no process of this namespace has the id and its socket does not accept.
 *
 * A descriptor is used only after fstat(2) has told that it is the one that was opened.  The program could still close
 * it in between; preventing that would need a lock in the program's own close().
 *
 * A datagram wakes the thread that polls.  Its descriptors may be in another table than the caller's, so the caller
 * cannot shut them down, and cannot use a pipe or an eventfd; but a socket with a name can be reached from any table.
 * In the same way a thread that ends hands its descriptors to the next one: as a message in a mailbox.  Only the
 * mailbox is in the program's table meanwhile.
 *
 * Rejected for hiding the descriptor: a number above the soft limit (the table grows to it, in each process and at
 * each fork, and often the hard limit is no higher); closing the number while poll(2) holds the file (the file is gone
 * when poll returns, with the client that came); a signal or a futex in a shared file instead of a socket (a file
 * cannot tell whether its process lives). */
#define _GNU_SOURCE
#include "agent_socket.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST 960 /* numbers from here on are not reused soon, and need no larger table */
#define SPARE 32    /* below the limit, so that the program keeps its last numbers */

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

/* ---- the table of descriptors -------------------------------------------------------------------- */

static _Thread_local bool alone; /* this thread has a table of its own */

static int
close_range_of_own(unsigned first, unsigned last)
{
#ifdef SYS_close_range
    return (int)syscall(SYS_close_range, first, last, CLOSE_RANGE_UNSHARE);
#else
    (void)first, (void)last;
    return -1;
#endif
}

/* Emulators may close a range and ignore CLOSE_RANGE_UNSHARE.  So the first call closes one descriptor and looks
 * whether the process's first thread still has it. */
static bool
leaves_the_others_alone(int probe)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", probe);
    return access(path, F_OK) == 0 && close_range_of_own((unsigned)probe, (unsigned)probe) == 0 &&
           fcntl(probe, F_GETFD) < 0 && access(path, F_OK) == 0;
}

static atomic_int proven; /* 1: the flag works, -1: it does not */

bool
plus_fd_table_is_shared(void)
{
    return atomic_load(&proven) < 0;
}

bool
plus_fd_table_leave(int probe, int kept)
{
    if (atomic_load(&proven) == 0) {
        atomic_store(&proven, leaves_the_others_alone(probe) ? 1 : -1);
    }
    if (atomic_load(&proven) < 0 || close_range_of_own((unsigned)(kept + 1), ~0u) != 0) {
        return false;
    }
    if (kept > 0) {
        (void)close_range_of_own(0, (unsigned)(kept - 1));
    }
    alone = true;
    while (open("/dev/null", O_RDWR | O_CLOEXEC) >= 0 && fcntl(2, F_GETFD) < 0) {
    }
    return true;
}

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

    fd = alone ? fd : move_up(fd);
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

/* ---- mailboxes ----------------------------------------------------------------------------------- */

struct plus_mailbox
plus_mailbox_open(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct plus_mailbox box = {PLUS_NO_FD, {.sun_family = AF_UNIX}, sizeof(struct sockaddr_un)};

    if (fd < 0) {
        return box;
    }
    /* The kernel chooses a name. */
    if (bind(fd, (struct sockaddr *)&box.name, sizeof(sa_family_t)) != 0 ||
        getsockname(fd, (struct sockaddr *)&box.name, &box.name_length) != 0) {
        close(fd);
        return box;
    }
    box.fd = plus_own_fd_take(fd);
    return box;
}

/* The control buffer of a message that carries descriptors. */
union parcel {
    char bytes[CMSG_SPACE(PLUS_OWN_FDS_MAX * sizeof(int))];
    struct cmsghdr head;
};

bool
plus_own_fds_send(const struct plus_mailbox *to, struct plus_own_fd *const *fds, size_t count)
{
    union parcel parcel = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct sockaddr_un name = to->name;
    char byte = 0;
    struct iovec part = {&byte, 1};
    int own[PLUS_OWN_FDS_MAX], from = -1;
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        if (plus_own_fd_is_ours(fds[i])) {
            own[found++] = fds[i]->fd;
        }
        else {
            *fds[i] = PLUS_NO_FD;
        }
    }
    memcpy(CMSG_DATA(&parcel.head), own, found * sizeof(int));
    parcel.head.cmsg_len = CMSG_LEN(found * sizeof(int));
    const struct msghdr message = {.msg_name = &name,
                                   .msg_namelen = to->name_length,
                                   .msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &parcel,
                                   .msg_controllen = CMSG_SPACE(found * sizeof(int))};
    bool sent = found > 0 && (from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0 &&
                sendmsg(from, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
    if (from >= 0) {
        close(from);
    }
    for (size_t i = 0; i < count; i++) {
        struct plus_own_fd kept = *fds[i];
        plus_own_fd_close(fds[i]);
        if (sent && kept.fd >= 0) {
            *fds[i] = (struct plus_own_fd){-1, kept.device, kept.inode};
        }
    }
    return sent;
}

bool
plus_own_fds_take(const struct plus_own_fd *box, struct plus_own_fd *const *fds, size_t count)
{
    union parcel parcel;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &parcel, .msg_controllen = sizeof parcel};
    int own[PLUS_OWN_FDS_MAX];
    size_t found = 0, next = 0;
    bool whole = true;

    if (plus_own_fd_is_ours(box) &&
        recvmsg(box->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1) {
        const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            found = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(own, CMSG_DATA(head), found * sizeof(int));
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (fds[i]->inode == 0) {
            continue; /* an empty descriptor was not sent */
        }
        /* Any process may send, so descriptors with another identity are closed. */
        if (next < found) {
            fds[i]->fd = alone ? own[next] : move_up(own[next]);
            next++;
        }
        if (!plus_own_fd_is_ours(fds[i])) {
            if (fds[i]->fd >= 0) {
                close(fds[i]->fd);
            }
            *fds[i] = PLUS_NO_FD;
            whole = false;
        }
    }
    while (next < found) {
        close(own[next++]);
    }
    return whole;
}

/* ---- the folder ---------------------------------------------------------------------------------- */

/* Makes the folder if it is missing; 0 if it is the user's own and closed to others. */
static int
check_folder(const char *path)
{
    struct stat status;

    /* The umask may have removed bits of the owner's. */
    bool made = mkdir(path, 0700) == 0 && chmod(path, 0700) == 0;
    if ((!made && errno != EEXIST) || lstat(path, &status) != 0) {
        return -errno;
    }
    bool private =
        S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
    return private ? 0 : -EPERM;
}

/* True if only this user can write into `path`, which may be a link. */
static bool
is_own_folder(const char *path)
{
    struct stat status;

    return path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

/* Writes the path of the folder.  A folder is skipped if its path and a file's name are too long together. */
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

/* Returns 1: a process accepts; 0: certainly none; -1: not known. */
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

/* Listens under another name first, so that the file at `path` always has a listener. */
static int
listen_at(int fd, const char *path, const char *first)
{
    struct sockaddr_un address = address_of(first);

    unlink(first);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return -errno;
    }
    /* Nobody can connect before listen(2), whatever mode the umask gave the file. */
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

    agent->listening = agent->waking.fd = PLUS_NO_FD;
    if (error < 0) {
        return error;
    }
    snprintf(agent->path, sizeof agent->path, "%s/%d.sock", folder, (int)getpid());
    snprintf(first, sizeof first, "%s/.%d.new", folder, (int)getpid());
    /* Processes of two containers may have the same id and share the folder. */
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
    agent->waking = plus_mailbox_open();
    return agent->listening.fd < 0 ? -EBADF : 0;
}

void
plus_agent_socket_close(struct plus_agent_socket *agent)
{
    struct stat status;

    plus_own_fd_close(&agent->listening);
    plus_own_fd_close(&agent->waking.fd);
    if (lstat(agent->path, &status) == 0 && status.st_dev == agent->device &&
        status.st_ino == agent->inode) {
        unlink(agent->path);
    }
}

void
plus_agent_socket_forget(struct plus_agent_socket *agent)
{
    plus_own_fd_close(&agent->listening); /* no shutdown: the sockets are the parent's, too */
    plus_own_fd_close(&agent->waking.fd);
    *agent = (struct plus_agent_socket){.listening = PLUS_NO_FD, .waking.fd = PLUS_NO_FD};
}

int
plus_agent_socket_poll(const struct plus_agent_socket *agent, int fd, short events, int timeout_ms)
{
    struct pollfd polled[2] = {{.fd = fd, .events = events}, {.fd = -1, .events = POLLIN}};
    char byte;

    if (plus_own_fd_is_ours(&agent->waking.fd)) {
        polled[1].fd = agent->waking.fd.fd;
    }
    int ready = poll(polled, 2, timeout_ms);
    if (polled[1].revents != 0 && plus_own_fd_is_ours(&agent->waking.fd)) {
        (void)recv(agent->waking.fd.fd, &byte, sizeof byte, MSG_DONTWAIT);
    }
    return ready <= 0 ? ready : polled[0].revents != 0 ? 1 : -1;
}

bool
plus_agent_socket_wake(const struct plus_agent_socket *agent)
{
    struct stat status;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool sent = fd >= 0 && sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                                  (const struct sockaddr *)&agent->waking.name,
                                  agent->waking.name_length) == 1;
    bool full = !sent && errno == EAGAIN; /* of datagrams that were not read yet */

    if (fd >= 0) {
        close(fd);
    }
    /* The name does not work in another network namespace, or after the program has closed the descriptor.  The thread
     * that polls keeps the listening socket alive, so a connection wakes it. */
    return sent || full ||
           (lstat(agent->path, &status) == 0 && status.st_ino == agent->inode &&
            is_alive(agent->path) == 1);
}

bool
plus_agent_socket_admits(int client)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           length == sizeof peer && (peer.uid == geteuid() || peer.uid == 0);
}

/* ---- files that others left --------------------------------------------------------------------------- */

static bool
is_left_over(const char *folder, const char *name, char *path, size_t size)
{
    char *end;
    long pid = strtol(name, &end, 10);

    if (end == name || strcmp(end, ".sock") != 0 || pid <= 0 || pid == getpid()) {
        return false;
    }
    snprintf(path, size, "%s/%s", folder, name);
    /* The process may run in another PID namespace, where this PID is not seen: then only a connection to its socket
     * shows that it runs. */
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH && is_alive(path) == 0;
}

void
plus_agent_socket_clean(const struct plus_agent_socket *agent)
{
    /* Not readdir(3): it allocates, and this may run between fork and the rest of the child.  The build asks for
     * 64-bit file offsets, so the C library's record is the kernel's; musl has no other. */
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
