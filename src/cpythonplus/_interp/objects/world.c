/* PyUnstable_GC_VisitObjects() stops the world, calls back for each tracked object, and goes on when the callback wants no
 * more.  The work is done in the first call.  Meanwhile the interpreter holds the lock of its list of threads, which none of
 * the public readers of that list takes.
 *
 * Rejected: _PyEval_StopTheWorld(), which is not exported; PyOS_BeforeFork(), which runs the program's hooks and takes the
 * import lock. */
#include "world.h"

#ifdef Py_GIL_DISABLED

#include <stdatomic.h>
#include <time.h>

#include "../../_base/process/clock.h"

/* The thread for which the world is stopped, or 0. */
static _Atomic unsigned long owner;

struct going_on {
    int (*work)(void *);
    void *arg;
    int result;
    bool done;
};

static int
once(PyObject *op, void *arg)
{
    struct going_on *it = arg;

    if (!it->done) {
        it->done = true;
        atomic_store(&owner, PyThread_get_thread_ident());
        it->result = it->work(it->arg);
        atomic_store(&owner, 0);
    }
    return 0;
}

int
plus_world_stopped(int (*work)(void *), void *arg)
{
    struct going_on it = {work, arg, -EINVAL, false};

    if (atomic_load(&owner) == PyThread_get_thread_ident()) {
        return work(arg);
    }
    PyUnstable_GC_VisitObjects(once, &it);
    return it.result;
}

/* ---- proof ---------------------------------------------------------------------------------------- */

#define PATIENCE_NS (2 * PLUS_NS_PER_S) /* on a busy machine */
#define LOOK_NS 1000000L

struct runner {
    _Atomic unsigned long rounds;
    _Atomic bool stop;
    PyThread_type_lock ended;
};

static void
run(void *arg)
{
    struct runner *it = arg;

    PyGILState_STATE state = PyGILState_Ensure();

    while (!atomic_load(&it->stop)) {
        atomic_fetch_add(&it->rounds, 1);
        Py_BEGIN_ALLOW_THREADS;
        Py_END_ALLOW_THREADS;
    }
    PyGILState_Release(state);
    PyThread_release_lock(it->ended);
}

static bool
gets_on(struct runner *it)
{
    unsigned long before = atomic_load(&it->rounds);
    uint64_t end_ns = plus_now_ns() + PATIENCE_NS;
    bool moved = false;

    Py_BEGIN_ALLOW_THREADS;
    while (!moved && plus_now_ns() < end_ns) {
        moved = atomic_load(&it->rounds) > before + 1;
    }
    Py_END_ALLOW_THREADS;
    return moved;
}

static int
stands_still(void *arg)
{
    struct runner *it = arg;
    unsigned long before = atomic_load(&it->rounds);

    (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return atomic_load(&it->rounds) == before;
}

static const char *
prove(void)
{
    struct runner it = {.ended = PyThread_allocate_lock()};
    const char *refusal = "other threads cannot be stopped";

    if (it.ended == NULL) {
        return refusal;
    }
    (void)PyThread_acquire_lock(it.ended, WAIT_LOCK);
    if (PyThread_start_new_thread(run, &it) != PYTHREAD_INVALID_THREAD_ID) {
        if (gets_on(&it) && plus_world_stopped(stands_still, &it) == 1 && gets_on(&it)) {
            refusal = NULL;
        }
        atomic_store(&it.stop, true);
        Py_BEGIN_ALLOW_THREADS;
        (void)PyThread_acquire_lock(it.ended, WAIT_LOCK);
        Py_END_ALLOW_THREADS;
    }
    PyThread_release_lock(it.ended);
    PyThread_free_lock(it.ended);
    return refusal;
}

const char *
plus_world_refusal(void)
{
    static _Atomic int proven; /* two threads that ask at once both prove it */
    static const char *_Atomic refusal;

    if (!atomic_load(&proven)) {
        atomic_store(&refusal, prove());
        atomic_store(&proven, 1);
    }
    return atomic_load(&refusal);
}

#endif
