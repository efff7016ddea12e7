#include "identity.h"

#include <pthread.h>
#include <stdatomic.h>

_Thread_local uint64_t plus_identity_own PLUS_FAST_TLS;
_Thread_local unsigned long plus_identity_pthread PLUS_FAST_TLS;
uint32_t plus_fork_generation;

static _Atomic uint64_t last; /* the newest number */
static void (*on_make)(void);
/* Threads with numbers up to this one are gone, except the survivor; written in the child of a
 * fork, by its only thread. */
static uint64_t gone_up_to;
/* the number of the thread that a fork left; written in the child, by that thread */
static uint64_t survivor;

uint64_t
plus_identity_make(void)
{
    plus_identity_pthread = (unsigned long)pthread_self();
    plus_identity_own = atomic_fetch_add(&last, 1) + 1u;
    if (on_make != NULL) {
        on_make();
    }
    return plus_identity_own;
}

void
plus_identity_on_make(void (*callback)(void))
{
    on_make = callback;
}

bool
plus_identity_is_gone(uint64_t identity)
{
    return identity != 0 && identity <= gone_up_to && identity != survivor;
}

void
plus_identity_atfork_child(void)
{
    gone_up_to = atomic_load(&last);
    survivor = plus_identity_own;
    plus_fork_generation++;
}
