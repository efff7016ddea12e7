/* What a thread's tasklets wait for outside of the interpreter: descriptors, times, and other threads' wake-ups.
 *
 *   asyncio's loop (selector loop or uvloop)
 *     reader: epoll_fd ---> epoll ---+--- sockets, pipes ... of waiting tasklets
 *                                    +--- timer_fd: the earliest dead line
 *                                    +--- event_fd: a tasklet became runnable while the loop slept
 *
 * The loop sees one descriptor, which is ready when any of these is; so waiting costs nothing in it, however many
 * tasklets wait.  Rejected: loop.add_reader() for each wait.  It is two system calls and some microseconds of
 * Python for each request (the benchmark tasklet-io), and asyncio takes one callback for each descriptor and direction.
 *
 * Registrations are of two kinds.  A socket of ours is registered once, edge-triggered, until plus_poller_forget():
 * its owner calls that before it closes it.  Any other descriptor is registered for one event at a time, since nobody
 * tells when its number comes to mean another file.
 *
 * All with the GIL held but for the sleep in plus_poller_wait().  fork: the child's epoll would be the parent's, so the
 * child begins with new ones (plus_poller_after_fork).
 */
#ifndef PLUS_TASKLETS_POLLER_H
#define PLUS_TASKLETS_POLLER_H

#include "../core/task.h"

#include <sys/epoll.h>

enum { PLUS_IO_READ = EPOLLIN, PLUS_IO_WRITE = EPOLLOUT };

/* The poller of the scheduler's thread, made if need be.  NULL with OSError or MemoryError. */
struct plus_poller *
plus_poller_get(struct plus_scheduler *sched);

/* To be readable in the event loop. */
int
plus_poller_descriptor(const struct plus_poller *poller);

/* Makes those runnable whose descriptors are ready, without waiting. */
void
plus_poller_look(struct plus_poller *poller);

/* Gives the GIL up until a descriptor is ready, plus_poller_rouse() or the dead line. */
void
plus_poller_wait(struct plus_poller *poller, uint64_t deadline_ns);

/* Ends that wait, or the loop's.  From any thread. */
void
plus_poller_rouse(struct plus_poller *poller);

/* Has the descriptor become readable at that time, too. */
void
plus_poller_arm(struct plus_poller *poller, uint64_t deadline_ns);

/* Blocks the running tasklet until the descriptor is ready for one of `events` (PLUS_IO_*).  `stays`: its owner calls
 * forget() before it closes it.  Gives the ready events, 0 for a time-out, or -1 with an exception: OSError of
 * epoll_ctl, or with EBADF when it was forgotten meanwhile. */
int
plus_poller_await(struct plus_scheduler *sched, int fd, int events, uint64_t deadline_ns,
                  bool stays);

/* Whether the last read took all that there was, and nothing has come since: reading is in vain. */
bool
plus_poller_is_drained(struct plus_scheduler *sched, int fd);

/* A read of a stream gave less than was asked for. */
void
plus_poller_set_drained(struct plus_scheduler *sched, int fd);

/* Urgent data has been read from it: a short read may have stopped before that, and tells nothing. */
void
plus_poller_note_urgent(int fd);

/* It is about to be closed, or its number means another file now: in all threads who waits for it gets OSError(EBADF). */
void
plus_poller_forget(int fd);

/* In the child of a fork, for the one thread that is left. */
void
plus_poller_after_fork(struct plus_scheduler *sched);

void
plus_poller_free(struct plus_poller *poller);

#endif
