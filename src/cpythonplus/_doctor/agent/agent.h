/* A thread that answers questions about a live process, through its private Unix socket.
 *
 * A process without a client pays for two sleeping threads with small stacks, and no descriptor that the program or
 * its children see.  The threads hold no GIL, wake up for clients only, allocate nothing and block all signals.  The
 * listener has the socket, in a descriptor table of its own, and parses (request.h).  The keeper starts a thread with
 * an ordinary stack for each request of an admitted client (agent_socket.h).  That thread calls `answer`, which may
 * take the GIL.  There is one client at a time; one that stalls is dropped after some seconds.
 *
 * Rejected: a signal that makes the main thread answer (the program may use the signal, its system calls are
 * interrupted, and a main thread that waits in C never answers); polling at intervals (that costs an idle process
 * something); a thread that only the first client starts (some thread has to wait for that client).
 *
 * CPython warns if a process with threads forks, and counts them in the parent after fork(2).  So the threads are
 * ended before and started anew afterwards, by Python's own fork hooks; handlers of pthread_atfork() run before the
 * count.  If another thread than the main one forked, the child has no threads of ours: it ends with its last thread.
 * A client's connection outlasts a fork, in the parent only.
 *
 * An answer on the wire: '0' or '1' (it failed), four bytes of length, most significant first, then as many bytes of
 * JSON. */
#pragma once

#include "request.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the answer, from malloc; NULL: there is none.  Called by a worker, without the GIL. */
typedef char *(*plus_agent_answer)(const struct plus_request *request, size_t *length,
                                   bool *failed);

#define PLUS_AGENT_FOR_EVER (-1)

/* Opens the socket and starts the threads; changes nothing if they run already. idle_ms: the agent ends after so long
 * without a client, or when a client asks it to `leave`; PLUS_AGENT_FOR_EVER: never, and forked children have their
 * own.  Not reentrant: callers hold the GIL. 0 or -errno. */
int
plus_agent_start(plus_agent_answer answer, int idle_ms);

/* Ends the threads and removes the socket; waits for an answer that is being made.  Call without the GIL. */
void
plus_agent_stop(void);

/* The fork hooks. before_fork: call without the GIL; calls may nest, if two threads fork. child: with or without it. */
void
plus_agent_before_fork(void);
void
plus_agent_after_fork_parent(void);
void
plus_agent_after_fork_child(void);

/* True while a caller waits for the threads to end, before a fork or at the end of the process.  A long answer asks
 * this repeatedly.  Any thread. */
bool
plus_agent_is_stopping(void);

/* Returns whether after_fork_parent() will start the threads again. */
bool
plus_agent_will_go_on(void);

/* Returns the path of the socket, "" if there is none; waits until that is known. */
const char *
plus_agent_path(void);
