/* The functions that replace libc's in the interpreter's import slots.
 *
 * Each compares the condition variable with the GIL's two and passes every other one on to libc.  They run in any
 * thread that the interpreter calls them in, without the GIL, some with its mutex held; they take no Python object
 * and allocate nothing but a thread's first record.  They keep errno, as libc's functions do: the interpreter sets
 * it to 0 before it gives the GIL up for readdir(3), and reads it afterwards.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The GIL of the main interpreter, as the probe found it. */
struct plus_gil {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;        /* a thread that wants the GIL waits on it; a release signals it */
    pthread_cond_t *switch_cond; /* an acquisition signals it */
};

enum plus_hooks_level {
    PLUS_HOOKS_OFF,   /* every call goes on to libc */
    PLUS_HOOKS_TRACK, /* libc waits and wakes; we track the holder and withhold requests */
    PLUS_HOOKS_RUN,   /* we wait and wake */
};

/* The calls of one watched thread.  That thread fills it in; another reads each field once `seen` says that it is
 * known. */
struct plus_sighting {
    _Atomic uint32_t seen; /* futex word: enum plus_seen */
    bool clock_agrees;     /* the deadline was near on CLOCK_MONOTONIC */
    bool consistent;       /* every call so far was as expected */
    struct plus_gil gil;
};

enum plus_seen {
    PLUS_SEEN_NOTHING,
    PLUS_SEEN_WAIT,     /* gil.cond and gil.mutex are known */
    PLUS_SEEN_TAKEN,    /* gil.switch_cond is known too */
    PLUS_SEEN_RELEASED, /* the release signalled gil.cond */
};

/* From now on the calling thread's calls fill in `sighting`; NULL ends that. */
void
plus_hooks_watch(struct plus_sighting *sighting);

/* Sets the GIL and the level that the hooks use.  Called with gil->mutex held, except for the first call. */
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
