/* A thread that answers questions about a live process, through its private Unix socket.
 *
 * It costs a process that nobody looks at two sleeping threads with small stacks, and no descriptor that the program or
 * its children see: they hold no GIL, wake up for clients only, allocate nothing and have all signals blocked.  One has the
 * socket, in a table of descriptors of its own, and parses (request.h).  The other starts a thread with an ordinary stack for
 * each request of a client that may ask (agent_socket.h), which calls the `answer` function, which may take the GIL.  One
 * client at a time; one that stalls is dropped after some seconds.
 *
 * Rejected: a signal that has the main thread answer (the program may use the signal, its system calls are
 * interrupted, and a main thread that waits in C never answers); waking up every so often to look (that is not
 * nothing); a thread that only a first client starts (somebody has to start it).
 *
 * Fork: CPython warns where a process with threads forks, and counts them in the parent behind fork(2).  So the threads are
 * ended before and started anew afterwards, by Python's own fork hooks: pthread_atfork's come before the count.  A child
 * that was forked by another thread than the main one has none: it ends when its last thread does.  The connection of a client
 * lasts beyond a fork, in the parent only.
 *
 * An answer on the wire: '0' or '1' (it failed), four bytes of length, most significant first, then so much JSON.
 */
#ifndef PLUS_MEMORY_AGENT_H
#define PLUS_MEMORY_AGENT_H

#include "request.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the answer in memory of malloc, NULL if there is none.  Called by a thread of the agent, without the GIL. */
typedef char *(*plus_agent_answer)(const struct plus_request *request, size_t *length,
                                   bool *failed);

#define PLUS_AGENT_FOR_EVER (-1)

/* Opens the socket and starts the thread; when it runs already, nothing changes.  idle_ms: without a client for so long
 * it ends by itself, or when it is asked to `leave`; PLUS_AGENT_FOR_EVER: never, and forked children have their own.
 * Callers are one at a time (they hold the GIL).  0 or -errno. */
int
plus_agent_start(plus_agent_answer answer, int idle_ms);

/* Ends the threads and removes the socket; waits for an answer that is being made.  Never with the GIL held. */
void
plus_agent_stop(void);

/* Around a fork.  Before: never with the GIL held; they may nest, when two threads fork.  Child: with or without it. */
void
plus_agent_before_fork(void);
void
plus_agent_after_fork_parent(void);
void
plus_agent_after_fork_child(void);

/* Whether somebody waits for the threads to end, behind a fork or at the end of the process: an answer that takes its time
 * asks this again and again.  Any thread. */
bool
plus_agent_is_stopping(void);

/* Whether after_fork_parent() starts the threads again. */
bool
plus_agent_will_go_on(void);

/* The path of the socket, "" if there is none; waits until that is known. */
const char *
plus_agent_path(void);

#endif
