/* Installing the scheduler, and taking it out again.
 *
 *   1. find    the slots of three functions in the object that contains the interpreter's core (slots.c).  If other
 *              code has written one of them, the installation is refused.
 *   2. write   our hooks into the slots.  The hooks pass every call on to libc as long as the level is OFF.
 *   3. probe   which condition variables are the GIL's: a thread of our own takes the GIL that we hold.  Its first
 *              timed wait shows `cond` and `mutex`; when we have released the GIL, its next signal shows
 *              `switch_cond`, and its release signals `cond` again.  An unexpected call, or a deadline that is not
 *              near by CLOCK_MONOTONIC, leads to a refusal.
 *   4. level   RUN or TRACK, set under the GIL's mutex.  Then all of libc's sleepers on `cond` are woken, and call the
 *              hooks when they wait again.
 *   5. prove   (called by the Python half) that the interpreter answers a request of the hooks: with a policy that asks
 *              at once, a thread of our own must get the GIL while the caller runs bytecode.
 *
 * If a step fails, the slots get their former words back, and nothing has changed.  If atomic sections are in use,
 * stopping goes back to TRACK instead of OFF, and the slots keep the hooks.
 *
 * Locking.  Every function is called with the GIL held.  Steps 3 and 5 release it, so the GIL does not serialise the
 * changes: control_lock does.  Threads wait for it without the GIL.  Inside it the GIL's mutex may be taken, and inside
 * that the registry's lock.
 *
 * fork takes the GIL's mutex and the registry's lock, so the child finds neither half changed.  It does not take
 * control_lock, for which it would have to release the GIL.  So a child may find a change that another thread of the
 * parent had half made; then it takes the hooks out (abandon_change).  The interpreter makes a new mutex later; until
 * then the mutex must not stay locked.
 *
 * Rejected: finding the GIL in the interpreter's structures (a wrong offset does silent damage); trusting the version
 * number (a distribution may have changed the code).  The probe watches the very calls that the hooks use.
 */
#define _GNU_SOURCE
#include "control.h"

#include "../_base/compat.h"
#include "../_base/process/clock.h"
#include "../_base/process/fork.h"
#include "../_base/process/futex.h"
#include "../_base/process/own_thread.h"
#include "../_base/rank.h"
#include "scheduler/sched.h"
#include "scheduler/slots.h"

#include <stdio.h>

/* A probe that takes longer has met an interpreter that works differently.  A loaded machine or a container's quota
 * can keep its thread from running for some seconds. */
#define PROBE_WAIT_NS (100 * PLUS_NS_PER_MS)
#define PROBE_WAITS 100

/* All variables below are written with the GIL held. */
static struct plus_gil the_gil; /* mutex NULL: not found yet */
static bool slots_written;
static bool atomic_in_use;

static struct {
    struct plus_slot_set slots;
    uintptr_t hook;
    uintptr_t libc;
} wires[] = {
    {{.symbol = "pthread_cond_timedwait"},
     (uintptr_t)plus_hook_cond_timedwait,
     (uintptr_t)pthread_cond_timedwait},
    {{.symbol = "pthread_cond_wait"}, (uintptr_t)plus_hook_cond_wait, (uintptr_t)pthread_cond_wait},
    {{.symbol = "pthread_cond_signal"},
     (uintptr_t)plus_hook_cond_signal,
     (uintptr_t)pthread_cond_signal},
};

#define WIRES (sizeof(wires) / sizeof(wires[0]))

/* Any function of the interpreter's core identifies the object that contains the core. */
static const void *
core_address(void)
{
    return (const void *)(uintptr_t)PyEval_RestoreThread;
}

static int
find_slots(char reason[PLUS_REASON_SIZE])
{
    for (size_t i = 0; i < WIRES; i++) {
        struct plus_slot_set *slots = &wires[i].slots;
        int rc = plus_slots_find(core_address(), slots);

        if (rc < 0) {
            snprintf(reason, PLUS_REASON_SIZE,
                     "the interpreter's GOT entry for %s was not found: %s", slots->symbol,
                     strerror(-rc));
            return -1;
        }
        if (!plus_slots_untouched(core_address(), slots, wires[i].libc)) {
            snprintf(reason, PLUS_REASON_SIZE,
                     "another library has redirected the interpreter's calls to %s", slots->symbol);
            return -1;
        }
    }
    return 0;
}

static void
restore_slots(void)
{
    for (size_t i = 0; i < WIRES; i++) {
        plus_slots_restore(&wires[i].slots, wires[i].hook);
    }
    slots_written = false;
}

static int
write_slots(char reason[PLUS_REASON_SIZE])
{
    for (size_t i = 0; i < WIRES; i++) {
        int rc = plus_slots_write(&wires[i].slots, wires[i].hook);

        if (rc < 0) {
            snprintf(reason, PLUS_REASON_SIZE, "the GOT entry for %s cannot be written: %s",
                     wires[i].slots.symbol, strerror(-rc));
            while (i-- > 0) {
                plus_slots_restore(&wires[i].slots, wires[i].hook);
            }
            return -1;
        }
    }
    slots_written = true;
    return 0;
}

/* ------------------------------------------------------------------------------------------------
 * The probe: a thread of our own takes the GIL while we hold it, and its calls are watched.
 */

struct probe {
    struct plus_own_thread thread; /* first */
    struct plus_sighting sighting;
};

static void
run_probe(struct plus_own_thread *self)
{
    plus_hooks_watch(&((struct probe *)self)->sighting);
    PyGILState_STATE state = PyGILState_Ensure();
    PyGILState_Release(state);
    plus_hooks_watch(NULL);
}

/* Returns true once *word has reached `value`; false after PROBE_WAITS time-outs.  One long time-out would be over at
 * once for a machine that stood still for as long. */
static bool
await_word(_Atomic uint32_t *word, uint32_t value)
{
    uint32_t seen;

    for (int waits = 0; (seen = atomic_load(word)) < value;) {
        waits += plus_futex_wait(word, seen, plus_now_ns() + PROBE_WAIT_NS) == PLUS_FUTEX_TIMED_OUT;
        if (waits == PROBE_WAITS) {
            return false;
        }
    }
    return true;
}

static int
find_gil(char reason[PLUS_REASON_SIZE])
{
    struct probe *probe = calloc(1, sizeof(*probe));
    struct plus_sighting *sighting = &probe->sighting;
    int rc = -ENOMEM;
    bool found;

    if (probe != NULL) {
        probe->thread = (struct plus_own_thread){.name = "cpythonplus", .run = run_probe};
        rc = plus_own_thread_start(&probe->thread);
    }
    if (rc < 0) {
        free(probe);
        snprintf(reason, PLUS_REASON_SIZE, "the probe could not be started: %s", strerror(-rc));
        return -1;
    }
    found = await_word(&sighting->seen, PLUS_SEEN_WAIT);
    if (found) {
        Py_BEGIN_ALLOW_THREADS
        found = await_word(&sighting->seen, PLUS_SEEN_RELEASED);
        if (found) { /* the probe's thread needs the GIL no more */
            plus_own_thread_join(&probe->thread, PLUS_OWN_THREAD_NO_LIMIT);
        }
        Py_END_ALLOW_THREADS
    }
    if (!found) {
        /* The thread may still write to its sighting, so the thread keeps it. */
        plus_own_thread_let_go(&probe->thread);
        snprintf(reason, PLUS_REASON_SIZE,
                 "the interpreter does not wait for its GIL as expected (step %u of 3 not seen)",
                 (unsigned)atomic_load(&sighting->seen) + 1u);
        return -1;
    }
    rc = sighting->consistent && sighting->clock_agrees ? 0 : -1;
    the_gil = sighting->gil;
    free(probe);
    if (rc < 0) {
        the_gil = (struct plus_gil){0};
        snprintf(reason, PLUS_REASON_SIZE,
                 "the interpreter uses its GIL's condition variables in an unknown way");
    }
    return rc;
}

/* ------------------------------------------------------------------------------------------------
 * One change at a time, by a lock of its own: the probe releases the GIL.
 */

static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct plus_thread *) control_owner; /* compared only; written with the lock held */

static void
begin_change(void)
{
    plus_rank_taken(PLUS_RANK_CONTROL);
    if (pthread_mutex_trylock(&control_lock) != 0) {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&control_lock);
        Py_END_ALLOW_THREADS
    }
    atomic_store(&control_owner, plus_thread_self());
}

static void
end_change(void)
{
    atomic_store(&control_owner, NULL);
    pthread_mutex_unlock(&control_lock);
    plus_rank_given(PLUS_RANK_CONTROL);
}

/* ------------------------------------------------------------------------------------------------
 * fork
 */

/* The mutex that this thread's fork has locked; the registry's own hook runs inside of that. */
static _Thread_local pthread_mutex_t *forks_mutex;

static void
before_fork(void)
{
    forks_mutex = the_gil.mutex;
    if (forks_mutex != NULL) {
        pthread_mutex_lock(forks_mutex);
    }
}

static void
unlock(pthread_mutex_t *mutex)
{
    if (mutex != NULL) {
        pthread_mutex_unlock(mutex);
    }
}

static void
after_fork_parent(void)
{
    unlock(forks_mutex);
}

/* Runs in a child.  If another thread of the parent was half way through a change, undo the installation. */
static void
abandon_change(void)
{
    struct plus_thread *owner = atomic_load(&control_owner);

    if (owner != NULL && owner == plus_thread_if_known()) {
        return;
    }
    pthread_mutex_init(&control_lock, NULL); /* another thread may have held it at the fork */
    if (owner == NULL) {
        return;
    }
    plus_hooks_set(&(struct plus_gil){0}, PLUS_HOOKS_OFF);
    plus_sched_stop(false);
    restore_slots();
    the_gil = (struct plus_gil){0};
    atomic_store(&control_owner, NULL);
}

/* Unlocks the GIL's mutex.  The interpreter makes a new one a little later; until then, and in a child that C code
 * forked without the interpreter's hooks, the mutex must not stay locked. */
static void
after_fork_child(void)
{
    plus_sched_atfork_child();
    unlock(forks_mutex);
    abandon_change();
}

static const struct plus_fork_hooks fork_hooks = {before_fork, after_fork_parent, after_fork_child};

/* ------------------------------------------------------------------------------------------------
 * Levels
 */

/* Finds the slots and the GIL, unless that was done before.  `known` is a GIL that was found before, or NULL. */
static int
prepare(const struct plus_gil *known, char reason[PLUS_REASON_SIZE])
{
    if (slots_written) {
        return 0;
    }
    plus_threads_on_exit(plus_sched_forget);
    plus_hooks_set(&(struct plus_gil){0},
                   PLUS_HOOKS_OFF); /* a stale address would hide the calls */
    if (find_slots(reason) < 0 || write_slots(reason) < 0) {
        return -1;
    }
    if (known != NULL) {
        the_gil = *known;
    }
    else if (find_gil(reason) < 0) {
        restore_slots();
        return -1;
    }
    return 0;
}

/* Called before any record is made; afterwards the calling thread has one. */
static int
prepare_records(char reason[PLUS_REASON_SIZE])
{
    int rc = plus_threads_init();

    if (rc == 0) {
        rc = plus_fork_register(&fork_hooks);
    }
    if (rc == 0 && plus_thread_try_self() == NULL) {
        rc = -ENOMEM;
    }
    if (rc < 0) {
        snprintf(reason, PLUS_REASON_SIZE, "thread records cannot be kept: %s", strerror(-rc));
        return -1;
    }
    return 0;
}

/* The first part of every installation.  If it returns 0, the caller must call end_change(). */
static int
begin_installing(const struct plus_gil *known, char reason[PLUS_REASON_SIZE])
{
#ifdef Py_GIL_DISABLED /* also while the GIL is on: it may go off when an import ends */
    snprintf(reason, PLUS_REASON_SIZE, PLUS_FREE_THREADED);
    return -1;
#endif
    if (plus_compat_is_finalizing()) { /* the probe's thread would not get the GIL */
        snprintf(reason, PLUS_REASON_SIZE, "the interpreter finalises");
        return -1;
    }
    int rc = prepare_records(reason);

    if (rc < 0) {
        return rc;
    }
    begin_change();
    rc = prepare(known, reason);
    if (rc < 0) {
        end_change();
    }
    return rc;
}

void
plus_control_found(struct plus_gil *gil)
{
    *gil = the_gil;
}

int
plus_control_adopt(const struct plus_gil *gil, char reason[PLUS_REASON_SIZE])
{
    int rc = begin_installing(gil, reason);

    if (rc == 0) {
        end_change();
    }
    return rc;
}

/* Sets the level of the hooks, and wakes every thread that sleeps for the GIL in libc: it calls the hooks when it waits
 * again. */
static void
set_level(enum plus_hooks_level level)
{
    plus_hooks_set(&the_gil, level);
    pthread_cond_broadcast(the_gil.cond);
}

/* Up to 3.12 a request is noted in the waiter's interpreter, not in the holder's. */
static bool
may_mishear_requests(void)
{
#if PY_VERSION_HEX < 0x030D0000
    return PyInterpreterState_Head() != PyInterpreterState_Main(); /* the newest comes first */
#else
    return false;
#endif
}

static const struct plus_interpreter the_interpreter = {
    plus_compat_is_finalizing,
    may_mishear_requests,
};

int
plus_control_run(const struct plus_policy *policy, char reason[PLUS_REASON_SIZE])
{
    int rc = begin_installing(NULL, reason);

    if (rc < 0) {
        return rc;
    }
    plus_control_lock();
    plus_sched_start(policy, &the_interpreter);
    set_level(PLUS_HOOKS_RUN);
    plus_control_unlock();
    end_change();
    return 0;
}

int
plus_control_track(char reason[PLUS_REASON_SIZE])
{
    int rc = begin_installing(NULL, reason);

    if (rc < 0) {
        return rc;
    }
    atomic_in_use = true;
    if (plus_hooks_level() == PLUS_HOOKS_OFF) {
        plus_control_lock();
        plus_sched_track();
        set_level(PLUS_HOOKS_TRACK);
        plus_control_unlock();
    }
    end_change();
    return 0;
}

void
plus_control_stop(void)
{
    /* An interpreter that finalises ends threads that ask for the GIL; one of them may hold control_lock. */
    if (!slots_written || plus_compat_is_finalizing()) {
        return;
    }
    begin_change();
    if (slots_written) {
        plus_control_lock();
        set_level(atomic_in_use ? PLUS_HOOKS_TRACK : PLUS_HOOKS_OFF);
        plus_sched_stop(atomic_in_use);
        plus_control_unlock();
        if (!atomic_in_use) {
            restore_slots();
        }
    }
    end_change();
}

void
plus_control_lock(void)
{
    if (the_gil.mutex != NULL) {
        pthread_mutex_lock(the_gil.mutex);
    }
}

void
plus_control_unlock(void)
{
    unlock(the_gil.mutex);
}

/* ------------------------------------------------------------------------------------------------
 * The proof: the interpreter answers a request that the hooks make.
 */

static _Atomic uint32_t proof_taken;

static void
run_proof(struct plus_own_thread *Py_UNUSED(self))
{
    PyGILState_STATE state = PyGILState_Ensure();
    atomic_store(&proof_taken, 1);
    PyGILState_Release(state);
}

static struct plus_own_thread proof = {.name = "cpythonplus", .run = run_proof};

/* Returns whether the proof's thread has had the GIL; if so, joins the thread. */
static bool
await_proof(void)
{
    bool taken = atomic_load(&proof_taken) != 0;

    if (taken) {
        Py_BEGIN_ALLOW_THREADS
        plus_own_thread_join(&proof, PLUS_OWN_THREAD_NO_LIMIT);
        Py_END_ALLOW_THREADS
    }
    return taken;
}

int
plus_control_prove(void)
{
    /* Several threads may want a proof.  A running one serves all of them; a finished one is joined first. */
    await_proof();
    if (plus_own_thread_runs(&proof)) {
        return 0;
    }
    atomic_store(&proof_taken, 0);
    return plus_own_thread_start(&proof);
}

bool
plus_control_proven(void)
{
    return await_proof();
}
