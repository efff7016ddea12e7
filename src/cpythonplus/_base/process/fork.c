/*     before    last folder first    in the parent; each takes its locks
 *     parent    first folder first   each releases them
 *     child     first folder first   each makes them anew; before that identity.c notes the lost threads
 *
 * There is one pthread_atfork() for all, at the first registration, which is never removed: there is no function for
 * that, and the hooks stay in memory with the extension.  The list grows with the GIL held, when a folder is first
 * used.  C code that forks without the GIL at that very moment is not handled.
 *
 * Python's own hooks (os.register_at_fork) run outside of these: their `before` earlier, the others later.  Steps that
 * need Python, or the end of threads (own_thread.h), are done there.
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
    plus_identity_atfork_child(); /* this comes first: the hooks may ask for lost threads */
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
