/* The private Unix socket of a process: its folder, its file, who may ask through it, and who may see its descriptor.
 *
 * $XDG_RUNTIME_DIR/cpythonplus/PID.sock, else /tmp/cpythonplus-UID/PID.sock.  The folder is made with mode 0700; one that
 * is there already is used only if it is a folder, no link, of the effective user and closed to all others: in /tmp
 * anybody could have made it.  Once that is so, nobody else can change what lies behind the path, so it is used as it is.
 *
 * The program sees no descriptor of ours: the thread that opens the socket has a table of descriptors of its own
 * (plus_fd_table_leave).  A kernel or a container may refuse that.  Then the descriptors are the program's too, which may
 * close every one that it does not know (daemons do), and its next files get the same numbers.  So a descriptor is kept
 * with the identity of what it was opened for, and checked before use; and it is moved to a high number, which is not
 * given again soon.
 *
 * Nothing here knows of Python.  Any thread, no GIL; nothing blocks.
 */
#ifndef PLUS_MEMORY_AGENT_SOCKET_H
#define PLUS_MEMORY_AGENT_SOCKET_H

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

/* A socket for datagrams from anybody.  Its name is abstract, so that it is found from any table of descriptors, and whatever
 * root and folders the program has by then. */
struct plus_mailbox {
    struct plus_own_fd fd;
    struct sockaddr_un name;
    socklen_t name_length;
};

struct plus_agent_socket {
    struct plus_own_fd listening;
    struct plus_mailbox waking; /* what comes here ends a poll(2), nothing else */
    dev_t device;               /* of the file at `path` */
    ino_t inode;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
};

/* Gives the calling thread an empty table of descriptors, but for /dev/null at 0 to 2, for the rest of its life.  What it
 * opens from then on no other thread sees, and no child of theirs inherits; it may not touch a file of the program's, nor
 * run any code that could.  False where that is not to be had: nothing has changed.
 *
 * probe: a descriptor that the program's threads have, too, by which the first call of a process finds out.
 * kept: one that stays in the table, too; -1: none. */
bool
plus_fd_table_leave(int probe, int kept);

/* Whether a thread has tried, and is refused one. */
bool
plus_fd_table_is_shared(void);

#define PLUS_OWN_FDS_MAX 4

/* Takes a descriptor over (closes `fd` where it cannot). */
struct plus_own_fd
plus_own_fd_take(int fd);

/* Whether the number still means what was taken over. */
bool
plus_own_fd_is_ours(const struct plus_own_fd *own);

/* Closes it, if it is still ours. */
void
plus_own_fd_close(struct plus_own_fd *own);

/* Opens one; its `fd` is PLUS_NO_FD where there is none to be had. */
struct plus_mailbox
plus_mailbox_open(void);

/* Sends descriptors into a mailbox, and closes them.  What was sent keeps its identity, by which plus_own_fds_take() knows
 * it; others become PLUS_NO_FD.  At most PLUS_OWN_FDS_MAX.  False: none was sent. */
bool
plus_own_fds_send(const struct plus_mailbox *to, struct plus_own_fd *const *fds, size_t count);

/* Takes the same ones out of the mailbox.  False: they are not there; then they are PLUS_NO_FD. */
bool
plus_own_fds_take(const struct plus_own_fd *box, struct plus_own_fd *const *fds, size_t count);

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

/* Waits for `events` at a descriptor, or to be woken, until `timeout_ms` are over (negative: for ever).  1: there are
 * such events, or errors; 0: the time is over; -1: woken, or interrupted. */
int
plus_agent_socket_poll(const struct plus_agent_socket *agent, int fd, short events, int timeout_ms);

/* Makes the thread that polls it look again; false if there is no way to. */
bool
plus_agent_socket_wake(const struct plus_agent_socket *agent);

/* Whether the client is of the same user, or root. */
bool
plus_agent_socket_admits(int client);

/* Removes sockets in the same folder whose processes are gone. */
void
plus_agent_socket_clean(const struct plus_agent_socket *agent);

#endif
