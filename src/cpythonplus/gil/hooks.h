/* The functions that stand in for libc's in the interpreter's import slots.
 *
 * Each compares the condition variable with the GIL's two and hands every other one straight on to
 * libc.  They run in whatever thread the interpreter calls them, without the GIL, some with its
 * mutex held; they take no Python object and allocate nothing but a thread's first record.  They
 * leave errno alone, as libc's functions do: the interpreter sets it to 0 before it gives the GIL up
 * for readdir(3), and looks at it afterwards.
 */
#ifndef PLUS_GIL_HOOKS_H
#define PLUS_GIL_HOOKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The GIL of the main interpreter, as its calls give it away. */
struct plus_gil {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;        /* waited on by who wants it, signalled by who drops it */
    pthread_cond_t *switch_cond; /* signalled by who took it */
};

enum plus_hooks_level {
    PLUS_HOOKS_OFF,   /* everything goes on to libc */
    PLUS_HOOKS_TRACK, /* libc waits and wakes; we know the holder and hold requests back */
    PLUS_HOOKS_RUN,   /* we wait and wake */
};

/* What one watched thread's calls showed.  Filled in by that thread, read by another once `seen`
 * says so. */
struct plus_sighting {
    _Atomic uint32_t seen; /* futex word: enum plus_seen */
    bool clock_agrees;     /* the dead line was one switch interval away on CLOCK_MONOTONIC */
    bool consistent;       /* no call came that does not fit the picture */
    struct plus_gil gil;
};

enum plus_seen {
    PLUS_SEEN_NOTHING,
    PLUS_SEEN_WAIT,     /* gil.cond and gil.mutex are known */
    PLUS_SEEN_TAKEN,    /* gil.switch_cond too */
    PLUS_SEEN_RELEASED, /* the release signalled gil.cond */
};

/* From now on the calling thread's calls fill in `sighting`; NULL: no longer. */
void
plus_hooks_watch(struct plus_sighting *sighting);

/* Which GIL the hooks act on and how.  To be called with gil->mutex held, but for the first call. */
void
plus_hooks_set(const struct plus_gil *gil, enum plus_hooks_level level);

enum plus_hooks_level
plus_hooks_level(void);

int
plus_hook_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                         const struct timespec *abstime);
int
plus_hook_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int
plus_hook_cond_signal(pthread_cond_t *cond);

#endif
