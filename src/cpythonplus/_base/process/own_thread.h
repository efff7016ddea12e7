/* Threads of our own: starting and ending them, and keeping them out of the program's way.
 *
 * All signals are blocked in them: those are for the program's threads.  They have a name of their own, for `top -H`
 * and debuggers.  Python does not know them until they make a thread state; this code knows nothing of Python.
 *
 *     static void work(struct plus_own_thread *self)
 *     {
 *         for (;;) {
 *             uint32_t seen = atomic_load(&changes);
 *             if (plus_own_thread_is_to_end(self)) { return; }
 *             ...
 *             plus_futex_wait(&changes, seen, deadline);
 *         }
 *     }
 *     static struct plus_own_thread worker = {.name = "cpythonplus", .run = work, .wake = change};
 *
 *     plus_own_thread_start(&worker);  ...  plus_own_thread_end(&worker, limit_ns);
 *
 * The structure belongs to the caller, and must stay in place until the thread was joined, or for ever.  A caller that
 * needs more fields makes it the first member of a structure of its own.
 *
 * fork: a child has none of these threads, and may start them anew; no function needs to be told.  From 3.12 on CPython
 * warns if a process with several threads forks: long-lived threads must be ended by a `before` of
 * os.register_at_fork(), and started again by an `after_in_parent` (behind_fork.h).  Hooks of pthread_atfork do not
 * work: those for the parent run before the threads are counted, and they cannot wait for a thread that needs the GIL.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUS_OWN_THREAD_NO_LIMIT UINT64_MAX

struct plus_own_thread {
    const char *name; /* at most 15 characters */
    void (*run)(struct plus_own_thread *self);
    void (*wake)(void); /* makes the thread check `orders`; called by plus_own_thread_end() only */
    size_t stack_bytes; /* 0: the size of the program's threads */
    /* Private. */
    pthread_t handle;
    _Atomic uint32_t state, orders;
    _Atomic int process, id; /* of the kernel */
};

/* Start it, unless it runs, or is being ended by another thread.  Callers come one at a time (they hold the GIL, or a
 * lock of theirs).  0 or -errno. */
int
plus_own_thread_start(struct plus_own_thread *thread);

/* True if it was started in this process, and was not ended, joined or let go. */
bool
plus_own_thread_runs(const struct plus_own_thread *thread);

/* Called by the thread itself, between any two steps.  If it returns true the thread must return at once; the order is
 * no longer taken back. */
bool
plus_own_thread_is_to_end(struct plus_own_thread *self);

/* Order it to end, wake it and wait until it is gone.  False if it did not end within limit_ns, or is the caller; then
 * the order is taken back, and it goes on.  True if there is no such thread.  Call it without the GIL if the thread may
 * need that. */
bool
plus_own_thread_end(struct plus_own_thread *thread, uint64_t limit_ns);

/* Wait until a thread that ends without an order is gone.  False if it did not end within limit_ns.  Call it without
 * the GIL if the thread may need that; several threads may call it. */
bool
plus_own_thread_join(struct plus_own_thread *thread, uint64_t limit_ns);

/* Never join it: it ends by itself. */
void
plus_own_thread_let_go(struct plus_own_thread *thread);
