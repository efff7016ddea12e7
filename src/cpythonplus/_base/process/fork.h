/* The fork hooks of all folders with state, called in a safe order.
 *
 * fork copies only the calling thread: a lock that another thread held stays locked in the child for ever, and a list
 * that it was changing stays half changed.  So each folder with state registers three functions: before (in the parent;
 * takes its locks), parent (releases them), child (makes them anew and forgets the lost threads).  `before` runs in the
 * reverse order of registration, the others in the order of registration, as with pthread_atfork(3), which calls them:
 * a fork by C code is noticed too; vfork and posix_spawn are not and need not be (the child only execs).
 *
 * The child function runs before the interpreter's own re-initialisation: no Python calls.
 */
#pragma once

struct plus_fork_hooks {
    void (*before)(void);
    void (*parent)(void);
    void (*child)(void);
};

/* Register once for the life of the process; `hooks` must stay in place.  A second call with the same address does
 * nothing.  GIL held.  0 or -errno. */
int
plus_fork_register(const struct plus_fork_hooks *hooks);
