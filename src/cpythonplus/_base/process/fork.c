/*     before    last room first    in the parent; each takes its locks
 *     parent    first room first   gives them back
 *     child     first room first   makes them anew; before all, whose threads are gone is noted (identity.c)
 *
 * One pthread_atfork() for all, at the first registration, which is never taken back: there is no function for that,
 * and the hooks stay in memory with the extension.  The list grows with the GIL held, when a room is first used.  Not
 * allowed for: C code that forks without the GIL at that very moment.
 *
 * Python's own hooks (os.register_at_fork) run outside of these: their `before` earlier, the others later.  What needs
 * Python, or threads to be ended (own_thread.h), is done there.
 */
#include "fork.h"

#include "identity.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#define MAX_ROOMS 8

static const struct plus_fork_hooks
    *rooms[MAX_ROOMS]; /* written with the GIL held, never removed */
static size_t room_count;

static void
run_before(void)
{
    for (size_t i = room_count; i-- > 0;) {
        rooms[i]->before();
    }
}

static void
run_parent(void)
{
    for (size_t i = 0; i < room_count; i++) {
        rooms[i]->parent();
    }
}

static void
run_child(void)
{
    plus_identity_atfork_child(); /* first: the rooms may ask who is gone */
    for (size_t i = 0; i < room_count; i++) {
        rooms[i]->child();
    }
}

int
plus_fork_register(const struct plus_fork_hooks *hooks)
{
    for (size_t i = 0; i < room_count; i++) {
        if (rooms[i] == hooks) {
            return 0;
        }
    }
    if (room_count == MAX_ROOMS) {
        return -ENOSPC;
    }
    if (room_count == 0) {
        int error = pthread_atfork(run_before, run_parent, run_child);
        if (error != 0) {
            return -error;
        }
    }
    rooms[room_count++] = hooks;
    return 0;
}
