/* Threads of our own: how they begin, how they end, and how they keep out of the program's way.
 *
 * All signals are blocked in them: those are for the program's threads.  They have a name of their own, for `top -H` and
 * debuggers.  Python does not know them until they make a thread state; nothing here knows of Python.
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
 * The structure belongs to the caller, and lies still until the thread was joined, or for ever.  Whoever needs more than it
 * makes it the first member of a structure of its own.
 *
 * fork: a child has none of these threads, and may start them anew; no function needs to be told.  CPython, from 3.12 on,
 * warns where a process with several threads forks: those that live long are to be ended by a `before` of
 * os.register_at_fork(), and started again by an `after_in_parent` (behind_fork.h).  pthread_atfork's functions will not
 * do: those for the parent run before the threads are counted, and a thread that needs the GIL cannot be waited for there.
 */
#ifndef PLUS_BASE_OWN_THREAD_H
#define PLUS_BASE_OWN_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUS_OWN_THREAD_NO_LIMIT UINT64_MAX

struct plus_own_thread {
    const char *name; /* at most 15 characters */
    void (*run)(struct plus_own_thread *self);
    void (*wake)(void); /* so that it looks at its orders; for plus_own_thread_end() only */
    size_t stack_bytes; /* 0: as much as the program's threads have */
    /* Private. */
    pthread_t handle;
    _Atomic uint32_t state, orders;
    _Atomic int process, id; /* of the kernel */
};

/* Starts it, unless it runs, or is being ended by another thread.  Callers are one at a time (they hold the GIL, or a
 * lock of theirs).  0 or -errno. */
int
plus_own_thread_start(struct plus_own_thread *thread);

/* Whether it was started in this process, and nobody has ended it, joined it or let it go. */
bool
plus_own_thread_runs(const struct plus_own_thread *thread);

/* By the thread itself, between any two steps; true: it returns at once, and its orders are not taken back any more. */
bool
plus_own_thread_is_to_end(struct plus_own_thread *self);

/* Orders it to end, wakes it and waits until it is gone.  False: it was not within limit_ns, or is the caller; then
 * the order is taken back, and it goes on.  True where there is none.  Without the GIL, if the thread may need it. */
bool
plus_own_thread_end(struct plus_own_thread *thread, uint64_t limit_ns);

/* Waits until one that ends by itself is gone.  False: it was not within limit_ns.  As above; several threads may. */
bool
plus_own_thread_join(struct plus_own_thread *thread, uint64_t limit_ns);

/* Never joined: it ends when it likes. */
void
plus_own_thread_let_go(struct plus_own_thread *thread);

#endif
