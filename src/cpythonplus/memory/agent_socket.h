/* The private Unix socket of a process: its folder, its file, and who may ask through it.
 *
 * $XDG_RUNTIME_DIR/cpythonplus/PID.sock, else /tmp/cpythonplus-UID/PID.sock.  The folder is made with mode 0700; one that
 * is there already is used only if it is a folder, no link, of the effective user and closed to all others: in /tmp
 * anybody could have made it.  Once that is so, nobody else can change what lies behind the path, so it is used as it is.
 *
 * A program may close every descriptor that it does not know (daemons do), and its next files get the same numbers.  So a
 * descriptor is kept with the identity of what it was opened for, and checked before use; and it is moved to a high
 * number, which is not given again soon.
 *
 * Nothing here knows of Python.  Any thread, no GIL; nothing blocks.
 */
#ifndef PLUS_MEMORY_AGENT_SOCKET_H
#define PLUS_MEMORY_AGENT_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct plus_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define PLUS_NO_FD ((struct plus_own_fd){-1, 0, 0})

struct plus_agent_socket {
    struct plus_own_fd listening;
    dev_t device; /* of the file at `path` */
    ino_t inode;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
};

/* Takes a descriptor over (closes `fd` where it cannot). */
struct plus_own_fd
plus_own_fd_take(int fd);

/* Whether the number still means what was taken over. */
bool
plus_own_fd_is_ours(const struct plus_own_fd *own);

/* Closes it, if it is still ours. */
void
plus_own_fd_close(struct plus_own_fd *own);

/* Opens the socket of this process; `runtime_folder`: $XDG_RUNTIME_DIR or NULL.  A file that a process of the same
 * number left behind is replaced, a living one is not.  0 or -errno, then there is nothing to close. */
int
plus_agent_socket_open(struct plus_agent_socket *agent, const char *runtime_folder);

/* Closes it and removes its file, if that is still the one that was made. */
void
plus_agent_socket_close(struct plus_agent_socket *agent);

/* In the child of a fork: lets go of the parent's. */
void
plus_agent_socket_forget(struct plus_agent_socket *agent);

/* Makes whoever polls the socket look again; false if there is no way to. */
bool
plus_agent_socket_wake(const struct plus_agent_socket *agent);

/* Whether the client is of the same user, or root. */
bool
plus_agent_socket_admits(int client);

/* Removes sockets in the same folder whose processes are gone. */
void
plus_agent_socket_clean(const struct plus_agent_socket *agent);

#endif
