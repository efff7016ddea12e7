/* Starting threads of our own again, in the parent of a fork.
 *
 * CPython 3.12 and later count the process's threads when fork(2) has returned, some releases before the hooks of
 * os.register_at_fork() and some behind them, and warn if there are two.  So threads that were ended for the fork are
 * started again only when os.fork has returned.
 */
#pragma once

/* For a hook in C of os.register_at_fork(after_in_parent=...), with the GIL held: call go_on() after os.fork has
 * returned, with the GIL held; or at once, if the warning comes anyway or os.fork was not the function that forked. */
void
plus_behind_fork(void (*go_on)(void));
