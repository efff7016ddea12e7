/* The hooks for the interpreter's calls of pthread_cond_timedwait, _wait and _signal.
 *
 * Each hook compares the condition variable with two words, gil_cond and gil_switch_cond, and passes every other one on
 * to libc; both words are NULL until the GIL is found.  For the GIL's own it depends on the level:
 *
 *                      OFF     TRACK                                   RUN
 *     timedwait        libc    libc; a time-out is withheld while      plus_sched_wait
 *                              the holder is in an atomic section
 *     wait (switch)    libc    libc                                    plus_sched_await_switch
 *     signal: taken    libc    note the holder, libc                   plus_sched_acquired, libc
 *     signal: free     libc    note the holder, libc                   plus_sched_released
 *
 * The level is read without a lock, and may have changed when libc's wait returns.  Both directions are allowed for.  A
 * thread that libc put to sleep before the level rose is woken by the broadcast of the change (control.c), or by its
 * time-out.  A thread that sleeps in our queue when the level falls is sent back by plus_sched_stop(), and waits in
 * libc.  A waiter for the switch has no time-out, so libc's signal for it is sent at every level.
 *
 * During the probe (control.c) one thread is `watched`: its calls fill in a sighting, step by step, and go on to libc.
 *
 * Nothing here takes a Python object.  The hooks keep errno, because libc's functions do not change it and the
 * interpreter reads it afterwards.
 */
#define _GNU_SOURCE
#include "hooks.h"

#include "../_base/process/clock.h"
#include "../_base/process/futex.h"
#include "scheduler/sched.h"

#include <errno.h>
#include <stddef.h>

/* Written with the GIL's mutex held; the condition variables are compared without it. */
static _Atomic(pthread_cond_t *) gil_cond;
static _Atomic(pthread_cond_t *) gil_switch_cond;
static _Atomic enum plus_hooks_level hooks_level;
static pthread_mutex_t *gil_mutex; /* written and read with itself held */

/* Ten years, far beyond any deadline in use. */
#define FAR_NS (UINT64_C(315360000) * PLUS_NS_PER_S)

static _Thread_local struct plus_sighting *watched;

void
plus_hooks_watch(struct plus_sighting *sighting)
{
    watched = sighting;
}

void
plus_hooks_set(const struct plus_gil *gil, enum plus_hooks_level level)
{
    atomic_store(&gil_cond, gil->cond);
    atomic_store(&gil_switch_cond, gil->switch_cond);
    gil_mutex = gil->mutex;
    atomic_store(&hooks_level, level);
}

enum plus_hooks_level
plus_hooks_level(void)
{
    return atomic_load_explicit(&hooks_level, memory_order_relaxed);
}

static void
show(struct plus_sighting *sighting, enum plus_seen seen)
{
    atomic_store(&sighting->seen, seen);
    plus_futex_wake(&sighting->seen, 1);
}

/* Returns whether the deadline is on our clock.  A switch interval may be set to days; a deadline on the wall clock
 * is off by half a century. */
static bool
is_near(const struct timespec *abstime)
{
    uint64_t deadline = plus_timespec_ns(abstime);
    uint64_t now = plus_now_ns();

    return deadline + PLUS_NS_PER_S > now && deadline < now + FAR_NS;
}

static int
watch_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *abstime)
{
    struct plus_sighting *s = watched;

    if (atomic_load(&s->seen) == PLUS_SEEN_NOTHING) {
        s->gil.cond = cond;
        s->gil.mutex = mutex;
        s->clock_agrees = is_near(abstime);
        s->consistent = true;
        show(s, PLUS_SEEN_WAIT);
    }
    else if (s->gil.cond != cond || s->gil.mutex != mutex) {
        s->consistent = false;
    }
    return pthread_cond_timedwait(cond, mutex, abstime);
}

static void
watch_signal(pthread_cond_t *cond)
{
    struct plus_sighting *s = watched;

    switch (atomic_load(&s->seen)) {
    case PLUS_SEEN_WAIT:
        s->gil.switch_cond = cond;
        s->consistent = s->consistent && cond != s->gil.cond;
        show(s, PLUS_SEEN_TAKEN);
        break;
    case PLUS_SEEN_TAKEN:
        s->consistent = s->consistent && cond == s->gil.cond;
        watched = NULL; /* the sighting may be freed as soon as it is shown */
        show(s, PLUS_SEEN_RELEASED);
        break;
    default:
        break;
    }
}

static int
timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *abstime)
{
    if (cond != atomic_load_explicit(&gil_cond, memory_order_relaxed)) {
        return watched == NULL ? pthread_cond_timedwait(cond, mutex, abstime)
                               : watch_timedwait(cond, mutex, abstime);
    }
    if (plus_hooks_level() == PLUS_HOOKS_RUN) {
        return plus_sched_wait(mutex, plus_timespec_ns(abstime));
    }
    int rc = pthread_cond_timedwait(cond, mutex, abstime);
    /* The level may have changed meanwhile; the scheduler must know of the request all the same. */
    if (rc == ETIMEDOUT && plus_hooks_level() != PLUS_HOOKS_OFF && !plus_sched_may_ask()) {
        return 0; /* the holder is inside an atomic section: as if woken for nothing */
    }
    return rc;
}

int
plus_hook_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                         const struct timespec *abstime)
{
    int saved = errno;
    int rc = timedwait(cond, mutex, abstime);

    errno = saved;
    return rc;
}

int
plus_hook_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (cond == atomic_load_explicit(&gil_switch_cond, memory_order_relaxed) &&
        plus_hooks_level() == PLUS_HOOKS_RUN) {
        int saved = errno;

        plus_sched_await_switch(mutex);
        errno = saved;
        return 0;
    }
    return pthread_cond_wait(cond, mutex);
}

/* At level RUN libc's sleepers on gil_cond need no signal: they were sent back when the level was set, and a thread
 * that came since through a slot that another library took has a time-out.  A waiter for the switch has no time-out,
 * so each switch signal goes to libc; without sleepers that costs libc one load. */
int
plus_hook_cond_signal(pthread_cond_t *cond)
{
    bool taken = cond == atomic_load_explicit(&gil_switch_cond, memory_order_relaxed);
    enum plus_hooks_level level = plus_hooks_level();

    if (!taken && cond != atomic_load_explicit(&gil_cond, memory_order_relaxed)) {
        if (watched != NULL) {
            watch_signal(cond);
        }
        return pthread_cond_signal(cond);
    }
    if (level == PLUS_HOOKS_RUN &&
        (taken ? plus_sched_acquired_alone() : plus_sched_released_alone())) {
        /* Most calls of a single-threaded program end here. */
        return taken ? pthread_cond_signal(cond) : 0;
    }
    if (level != PLUS_HOOKS_OFF) {
        int saved = errno;

        if (taken) {
            plus_sched_acquired();
        }
        else {
            plus_sched_released(gil_mutex);
        }
        errno = saved;
    }
    return level == PLUS_HOOKS_RUN && !taken ? 0 : pthread_cond_signal(cond);
}
