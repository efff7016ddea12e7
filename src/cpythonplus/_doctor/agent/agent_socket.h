/* The private Unix socket of a process: its folder, its file, and its descriptor, which the program does not see.
 *
 * The file is $XDG_RUNTIME_DIR/cpythonplus/PID.sock, else /tmp/cpythonplus-UID/PID.sock.  The folder is made with mode
 * 0700.  An existing one is used only if it is a folder, no link, owned by the effective user and closed to all
 * others: in /tmp anybody could have made it.  After this check no other user can change what the path leads to, so
 * the path is used without further checks.
 *
 * The thread that opens the socket has a descriptor table of its own (plus_fd_table_leave).  A kernel or a container
 * may refuse that.  Then the descriptors are in the program's table.  The program may close every descriptor that it
 * does not know (daemons do), and its next files get the same numbers.  So a descriptor is kept with the identity of
 * its file, which is checked before use, and it is moved to a high number, which is not reused soon.
 *
 * Nothing here uses Python.  Any thread, no GIL; nothing blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct plus_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define PLUS_NO_FD ((struct plus_own_fd){-1, 0, 0})

/* A datagram socket that any process can send to.  Its name is abstract, so it can be reached from any descriptor
 * table, and after the program has changed its root or its folders. */
struct plus_mailbox {
    struct plus_own_fd fd;
    struct sockaddr_un name;
    socklen_t name_length;
};

struct plus_agent_socket {
    struct plus_own_fd listening;
    struct plus_mailbox waking; /* a message here ends a poll(2), and does nothing else */
    dev_t device;               /* of the file at `path` */
    ino_t inode;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
};

/* Gives the calling thread, for the rest of its life, an empty descriptor table with /dev/null at 0 to 2.  No other
 * thread sees the descriptors that it opens then, and no child inherits them.  The thread may not touch a file of the
 * program's, nor run code that could.  False if the system refuses: nothing has changed.
 *
 * probe: a descriptor in the program's table; the first call of a process uses it to test the system. kept: a
 * descriptor that stays in the table, too; -1: none. */
bool
plus_fd_table_leave(int probe, int kept);

/* True if a thread has tried and was refused a table. */
bool
plus_fd_table_is_shared(void);

#define PLUS_OWN_FDS_MAX 4

/* Takes over a descriptor; closes `fd` on failure. */
struct plus_own_fd
plus_own_fd_take(int fd);

/* True if the number still means the file that was taken over. */
bool
plus_own_fd_is_ours(const struct plus_own_fd *own);

/* Closes the descriptor, if it is still ours. */
void
plus_own_fd_close(struct plus_own_fd *own);

/* Opens a mailbox; `fd` is PLUS_NO_FD on failure. */
struct plus_mailbox
plus_mailbox_open(void);

/* Sends descriptors into a mailbox, and closes them.  A descriptor that was sent keeps its identity, so that
 * plus_own_fds_take() knows it; the others become PLUS_NO_FD.  At most PLUS_OWN_FDS_MAX.  False: none was sent. */
bool
plus_own_fds_send(const struct plus_mailbox *to, struct plus_own_fd *const *fds, size_t count);

/* Takes the same descriptors out of the mailbox.  False: some are missing, and are PLUS_NO_FD. */
bool
plus_own_fds_take(const struct plus_own_fd *box, struct plus_own_fd *const *fds, size_t count);

/* Opens the socket of this process; `runtime_folder`: $XDG_RUNTIME_DIR or NULL.  A file that a dead process of the
 * same id left behind is replaced.  0 or -errno; on failure there is nothing to close. */
int
plus_agent_socket_open(struct plus_agent_socket *agent, const char *runtime_folder);

/* Closes the socket, and removes the file at `path` unless another process has replaced it. */
void
plus_agent_socket_close(struct plus_agent_socket *agent);

/* Called in the child of a fork: closes the parent's descriptors. */
void
plus_agent_socket_forget(struct plus_agent_socket *agent);

/* Waits at a descriptor for `events`, or for plus_agent_socket_wake(), at most `timeout_ms` (negative: for ever).  1:
 * such events, or errors; 0: timeout; -1: woken, or interrupted. */
int
plus_agent_socket_poll(const struct plus_agent_socket *agent, int fd, short events, int timeout_ms);

/* Makes plus_agent_socket_poll() return -1 in the thread that polls; false if the message cannot be sent. */
bool
plus_agent_socket_wake(const struct plus_agent_socket *agent);

/* True if the client is the same user, or root. */
bool
plus_agent_socket_admits(int client);

/* Removes sockets in the same folder whose processes are gone. */
void
plus_agent_socket_clean(const struct plus_agent_socket *agent);
