/* The poller of a thread: its tasklets' waits for descriptors and times, and other threads' wake-ups.
 *
 *   asyncio's loop (selector loop or uvloop)
 *     reader: epoll_fd ---> epoll ---+--- sockets, pipes ... of waiting tasklets
 *                                    +--- timer_fd: the earliest deadline
 *                                    +--- event_fd: a tasklet became runnable while the loop slept
 *
 * The loop watches one descriptor, which is ready when any of these is; so waiting costs the loop nothing, however many
 * tasklets wait.  Rejected: loop.add_reader() for each wait.  It costs two system calls and some microseconds of Python
 * for each request (the benchmark tasklet-io), and asyncio takes one callback for each descriptor and direction.
 *
 * Registrations are of two kinds.  A socket of ours is registered once, edge-triggered, until plus_poller_forget(),
 * which its owner calls before closing it.  Any other descriptor is registered for one event at a time, since nobody
 * tells when its number is reused for another file.
 *
 * Called with the GIL held, which only plus_poller_wait() gives up for its sleep.  fork: the child would share the
 * parent's epoll, so it makes new descriptors (plus_poller_after_fork).
 */
#pragma once

#include "../core/task.h"

#include <sys/epoll.h>

enum { PLUS_IO_READ = EPOLLIN, PLUS_IO_WRITE = EPOLLOUT };

/* Returns the poller of the scheduler's thread, made if need be; NULL with OSError or MemoryError. */
struct plus_poller *
plus_poller_get(struct plus_scheduler *sched);

/* The descriptor that an event loop watches for reading. */
int
plus_poller_descriptor(const struct plus_poller *poller);

/* Makes tasklets runnable whose descriptors are ready, without waiting. */
void
plus_poller_look(struct plus_poller *poller);

/* Gives the GIL up until a descriptor is ready, plus_poller_rouse() or the deadline. */
void
plus_poller_wait(struct plus_poller *poller, uint64_t deadline_ns);

/* Ends that wait, or the loop's.  Callable from any thread. */
void
plus_poller_rouse(struct plus_poller *poller);

/* Makes the poller's descriptor readable at the deadline too. */
void
plus_poller_arm(struct plus_poller *poller, uint64_t deadline_ns);

/* Blocks the running tasklet until the descriptor is ready for one of `events` (PLUS_IO_*).  `stays`: the owner calls
 * plus_poller_forget() before closing it.  Returns the ready events, 0 for a time-out, or -1 with an exception: OSError
 * of epoll_ctl, or with EBADF if it was forgotten meanwhile. */
int
plus_poller_await(struct plus_scheduler *sched, int fd, int events, uint64_t deadline_ns,
                  bool stays);

/* Whether the last read took all that there was, and nothing has come since, so that a read would fail. */
bool
plus_poller_is_drained(struct plus_scheduler *sched, int fd);

/* Notes that a read of a stream returned less than was asked for. */
void
plus_poller_set_drained(struct plus_scheduler *sched, int fd);

/* Notes that urgent data was read: a short read may have stopped before that, and says nothing. */
void
plus_poller_note_urgent(int fd);

/* Called before the descriptor is closed, or when its number refers to another file: in all threads, tasklets that wait
 * for it get OSError(EBADF). */
void
plus_poller_forget(int fd);

/* Called in the child of a fork, for the one thread that is left. */
void
plus_poller_after_fork(struct plus_scheduler *sched);

void
plus_poller_free(struct plus_poller *poller);
