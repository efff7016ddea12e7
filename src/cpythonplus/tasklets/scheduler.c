/* Switching between the tasklets of a thread, and what happens when there is none to switch to.
 *
 * A tasklet that has ended and whose successor has not begun hands its C stack over: spawning and ending a
 * thousand of them costs no switch of stacks at all.  Rejected: a scheduler of its own to which every tasklet
 * returns; each going from one to the other would be two switches.
 */
/* What switches has no buffers, and the check of the stack protector would be a tenth of a switch. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC optimize("no-stack-protector")
#endif

#include "scheduler.h"

#include "../_base/clock.h"
#include "../gil/binding.h"
#include "deadline.h"
#include "hub.h"
#include "idle.h"
#include "instrument.h"
#include "interrupts.h"
#include "overflow.h"
#include "report.h"
#include "switch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RECHECK_NS PLUS_NS_PER_S /* a thread that ends tells nobody that the others are stuck now */

/* Stacks in use at which one thread begins to look for cold ones by itself, 1.2 GB; then at each fourth more. */
#define TRIM_AT ((size_t)131072)
#define TRIM_PARKED_NS (PLUS_NS_PER_S / 4)

#define LEAST_DEFAULT_BYTES ((size_t)512 << 10) /* of a stack, where threads get less */
#define FEW_BYTES ((size_t)128 << 10)           /* where there is little address space */
#define PART_OF_LIMIT 8192u                     /* of RLIMIT_AS for one */

_Thread_local struct plus_scheduler *plus_scheduler_own PLUS_FAST_TLS;
struct plus_scheduler *plus_schedulers;
PyObject *plus_tasklet_exit, *plus_error_handler, *plus_schedule_hook, *plus_channel_hook;
size_t plus_new_stack_bytes;
bool plus_foreign_wakers = true;

/* Of the last thread state here whose scheduler has ended.  Destructors of what else it had run afterwards. */
static _Thread_local uint64_t ended_id;

static const char dict_key[] = "cpythonplus.tasklets";

/* ---- schedulers ------------------------------------------------------------------------------- */

struct plus_scheduler *
plus_scheduler_of(PyThreadState *tstate)
{
    struct plus_scheduler *sched = plus_schedulers;

    while (sched != NULL && sched->tstate != tstate) {
        sched = sched->next_scheduler;
    }
    return sched;
}

struct plus_scheduler *
plus_scheduler_of_thread(unsigned long ident)
{
    struct plus_scheduler *sched = plus_schedulers;

    while (sched != NULL && plus_pystate_ident(sched->tstate) != ident) {
        sched = sched->next_scheduler;
    }
    return sched;
}

void
plus_scheduler_release(struct plus_scheduler *sched)
{
    if (--sched->references == 0) {
        plus_stacks_free(&sched->stacks);
        plus_timers_free(&sched->timers);
        free(sched->watchdogs);
        free(sched);
    }
}

static void
drop_runnables(struct plus_scheduler *sched)
{
    while (sched->current != NULL) {
        struct plus_tasklet *task = sched->current;

        plus_queue_remove(task);
        Py_DECREF(task);
    }
}

/* One whose last reference is gone is being freed: what that runs (a finaliser, what was in its dict) meets it
 * here, and must not free it a second time. */
static bool
is_in_use(struct plus_tasklet *task)
{
    return Py_REFCNT(task) > 0;
}

static int
find_blocked(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    *(struct plus_tasklet **)arg = task;
    return task->blocked != 0; /* the channel's reference keeps it */
}

/* Nobody is to meet those that cannot run any more in a channel: what is sent to them would be lost. */
static void
unblock_all(struct plus_scheduler *sched)
{
    struct plus_tasklet *task = sched->main;

    while ((task != NULL && task->blocked) ||
           plus_stacks_each(&sched->stacks, find_blocked, &task) != 0) {
        plus_channel_remove(task);
        Py_DECREF(task);
        task = NULL;
    }
}

/* The thread state is being cleared: by its own thread at its end, or by another one when the interpreter
 * ends or after a fork; then the C stacks cannot be run and are left as they are. */
static void
scheduler_end(PyObject *capsule)
{
    struct plus_scheduler *sched = PyCapsule_GetPointer(capsule, dict_key);
    struct plus_scheduler **link = &plus_schedulers;

    if (sched == plus_scheduler_own) {
        PyThreadState *tstate = sched->tstate;
        bool cleared = plus_pystate_is_cleared(tstate);

        if (!plus_compat_is_finalizing()) {
            plus_scheduler_kill_all(sched);
        }
        if (cleared) {
            /* PyThreadState_Clear() has been here: one that an event loop made just now, to say that
             * it runs, nobody else would free. */
            plus_pystate_clear_again(tstate);
        }
        plus_scheduler_own = NULL;
        ended_id = PyThreadState_GetID(sched->tstate);
        plus_overflow_thread_end(sched->signal_stack);
    }
    while (*link != NULL && *link != sched) {
        link = &(*link)->next_scheduler;
    }
    if (*link == sched) {
        *link = sched->next_scheduler;
    }
    plus_watchdog_end(sched);
    if (sched->holds_gil) {
        plus_scheduler_hold_gil(sched, false);
    }
    sched->tstate = NULL; /* what comes to its end now is not asked to run */
    drop_runnables(sched);
    if (!plus_compat_is_finalizing()) {
        unblock_all(sched);
    }
    Py_CLEAR(sched->main);
    plus_hub_end(sched);
    plus_scheduler_release(sched);
}

static int
tie_to_thread(struct plus_scheduler *sched)
{
    PyObject *dict = PyThreadState_GetDict();
    PyObject *capsule = PyCapsule_New(sched, dict_key, NULL);
    int rc = dict != NULL && capsule != NULL ? PyDict_SetItemString(dict, dict_key, capsule) : -1;

    if (rc == 0) {
        (void)PyCapsule_SetDestructor(capsule, scheduler_end);
        sched->references++;
    }
    else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    Py_XDECREF(capsule);
    return rc;
}

/* Where addresses are few, stacks are not to use them up. */
static size_t
afford(size_t bytes)
{
    struct rlimit limit;
    char policy = '0';
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!read(fd, &policy, 1);
        close(fd);
    }
    if (policy == '2' && bytes > FEW_BYTES) {
        bytes = FEW_BYTES; /* each mapping counts as memory */
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur / PART_OF_LIMIT) {
        bytes = limit.rlim_cur / PART_OF_LIMIT;
        bytes =
            bytes < 2 * PLUS_STACK_BYTES_WIDE ? FEW_BYTES : bytes; /* guards are not free, too */
    }
    return bytes;
}

size_t
plus_default_stack_bytes(void)
{
    size_t bytes = PyThread_get_stacksize();
    pthread_attr_t attr;

    if (bytes == 0 && pthread_attr_init(&attr) == 0) {
        (void)pthread_attr_getstacksize(&attr, &bytes);
        pthread_attr_destroy(&attr);
    }
    bytes = bytes < LEAST_DEFAULT_BYTES ? LEAST_DEFAULT_BYTES : bytes;
    return bytes < PLUS_STACK_BYTES_MAX ? bytes : PLUS_STACK_BYTES_MAX;
}

struct plus_scheduler *
plus_scheduler_make(void)
{
    if (PyThreadState_GetID(PyThreadState_Get()) == ended_id) {
        PyErr_SetString(PyExc_RuntimeError, "the thread is ending: it no longer has tasklets");
        return NULL;
    }
    struct plus_scheduler *sched = calloc(1, sizeof(*sched));

    if (sched == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    sched->references = 1;
    sched->tstate = PyThreadState_Get();
    sched->stacks.stack_bytes =
        plus_new_stack_bytes != 0 ? plus_new_stack_bytes : plus_default_stack_bytes();
    sched->trim_at = TRIM_AT;
    plus_waitq_init(&sched->idle);
    sched->main = sched->running = plus_tasklet_make_main(sched);
    if (sched->main == NULL) {
        plus_scheduler_release(sched);
        return NULL;
    }
    plus_queue_insert((struct plus_tasklet *)Py_NewRef(sched->main));
    if (tie_to_thread(sched) < 0) {
        drop_runnables(sched);
        Py_CLEAR(sched->main);
        plus_scheduler_release(sched);
        return NULL;
    }
    plus_scheduler_release(sched); /* the thread's dict has it */
    sched->next_scheduler = plus_schedulers;
    plus_schedulers = sched;
    plus_scheduler_own = sched;
    sched->signal_stack = plus_overflow_thread_begin();
    plus_overflow_install();
    return sched;
}

struct visit {
    int (*each)(struct plus_tasklet *, void *);
    void *arg;
};

static int
visit_owner(void *owner, void *arg)
{
    const struct visit *visit = arg;
    struct plus_tasklet *task = owner;

    return task->started && task->alive && is_in_use(task) ? visit->each(task, visit->arg) : 0;
}

int
plus_scheduler_each(struct plus_scheduler *sched, int (*each)(struct plus_tasklet *, void *),
                    void *arg)
{
    struct visit visit = {each, arg};

    return plus_stacks_each(&sched->stacks, visit_owner, &visit);
}

static int
find_owner(void *owner, void *arg)
{
    struct plus_tasklet *task = owner;

    if (task->alive && !task->abandoned && task->sched->running != task && is_in_use(task)) {
        *(struct plus_tasklet **)arg = task;
        return 1;
    }
    return 0;
}

/* The first runnable one that has not begun, or NULL. */
static struct plus_tasklet *
find_new_one(struct plus_scheduler *sched)
{
    struct plus_tasklet *task = sched->current;

    for (int i = 0; i < sched->runcount; i++, task = task->next) {
        if (!task->started) {
            return task;
        }
    }
    return NULL;
}

/* Other threads go on while this one ends its tasklets: what they sent to one that is blocked still, and about to
 * be ended, would be lost. */
static void
leave_channels(struct plus_scheduler *sched)
{
    struct plus_tasklet *task;

    while (plus_stacks_each(&sched->stacks, find_blocked, &task) != 0) {
        Py_INCREF(task);
        PyObject *result = plus_tasklet_kill(task, true);

        if (result == NULL) {
            PyErr_Clear(); /* no memory */
        }
        if (task->blocked) {
            plus_channel_remove(task);
            plus_queue_insert(task);
        }
        Py_XDECREF(result);
        Py_DECREF(task);
    }
}

/* Coroutines may have been given to a hub that has not begun: as its loop ends, so do they. */
static void
begin_hub(struct plus_scheduler *sched)
{
    struct plus_tasklet *hub = sched->own_hub;

    if (hub != NULL && !hub->started && plus_is_runnable(hub)) {
        plus_drop_result(plus_tasklet_run(hub, false), (PyObject *)hub);
    }
}

void
plus_scheduler_kill_all(struct plus_scheduler *sched)
{
    begin_hub(sched);
    leave_channels(sched);
    /* Each end goes on with the queue; nothing is to begin now. */
    for (struct plus_tasklet *task; (task = find_new_one(sched)) != NULL;) {
        plus_queue_remove(task);
        Py_DECREF(task);
    }
    /* One that catches TaskletExit and goes on is asked again, but not for ever. */
    size_t attempts = 3 * sched->stacks.in_use + 100;
    struct plus_tasklet *task;

    while (attempts-- > 0 && plus_stacks_each(&sched->stacks, find_owner, &task) != 0) {
        Py_INCREF(task);
        plus_drop_result(plus_tasklet_kill(task, false), (PyObject *)task);
        Py_DECREF(task);
    }
}

/* ---- callbacks -------------------------------------------------------------------------------- */

void
plus_call_schedule_hook(struct plus_scheduler *sched, struct plus_tasklet *prev,
                        struct plus_tasklet *next)
{
    PyObject *type, *value, *traceback;
    PyObject *after = sched->after_switch;
    PyObject *hook = Py_NewRef(plus_schedule_hook);

    if (sched->in_callback) {
        Py_FatalError("Recursive scheduler call due to callbacks!");
    }
    sched->after_switch = NULL;
    sched->in_callback = true;
    sched->coming = next;
    if (prev != NULL && plus_is_runnable(prev)) {
        sched->current = prev;
    }
    PyErr_Fetch(&type, &value, &traceback);
    plus_drop_result(PyObject_CallFunctionObjArgs(hook, prev != NULL ? (PyObject *)prev : Py_None,
                                                  next != NULL ? (PyObject *)next : Py_None, NULL),
                     hook);
    PyErr_Restore(type, value, traceback);
    sched->in_callback = false;
    sched->coming = NULL;
    sched->after_switch = after;
    Py_DECREF(hook);
}

static bool at_end; /* of the interpreter: the tasklets of its main thread were killed */

void
plus_schedulers_end(void)
{
    at_end = true;
    if (plus_scheduler_own == NULL) {
        return;
    }
    plus_scheduler_kill_all(plus_scheduler_own);
    for (struct plus_tasklet *task;
         plus_stacks_each(&plus_scheduler_own->stacks, find_owner, &task) != 0;) {
        plus_tasklet_abandon(task);
    }
}

/* From here on modules, threads' data and contexts are taken apart, in no order: no parked frame may go on. */
static bool
is_over(void)
{
    return at_end && plus_compat_is_finalizing();
}

static bool
refuse_here(const struct plus_scheduler *sched)
{
    if (sched->in_callback) {
        PyErr_SetString(PyExc_RuntimeError,
                        sched->in_handler
                            ? "a signal handler cannot switch tasklets while its whole thread waits"
                            : "Recursive scheduler call due to callbacks!");
        return true;
    }
    return false;
}

bool
plus_refuse_leaving(const struct plus_scheduler *sched)
{
    if (!plus_is_runnable(sched->running)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a finaliser cannot switch while its tasklet is being switched away");
        return true;
    }
    return false;
}

bool
plus_refuse_in_callback(const struct plus_scheduler *sched)
{
    return refuse_here(sched) || plus_refuse_leaving(sched);
}

/* ---- going from one to the other -------------------------------------------------------------- */

static void
after_switch(struct plus_scheduler *sched)
{
    struct plus_tasklet *finished = sched->finished;
    PyObject *object = sched->after_switch;

    sched->finished = NULL;
    sched->after_switch = NULL;
    if (finished != NULL) {
        if (finished->stack != NULL) {
            plus_stack_give(&sched->stacks, finished->stack);
            finished->stack = NULL;
        }
        Py_DECREF(finished);
    }
    Py_XDECREF(object);
}

static inline void
settle(struct plus_scheduler *sched)
{
    if (sched->finished != NULL || sched->after_switch != NULL) {
        after_switch(sched);
    }
    plus_follow_atomic(sched);
}

/* Inside, other threads may run and the exception that is set has to stay. */
void
plus_scheduler_hold_gil(struct plus_scheduler *sched, bool hold)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    sched->holds_gil = hold;
    if (hold) {
        /* Where the ground differs, or without memory, only the watchdog is kept away. */
        sched->in_section = plus_atomic_hold();
    }
    else if (sched->in_section) {
        plus_atomic_let_go();
    }
    PyErr_Restore(type, value, traceback);
}

/* What a new tasklet runs: its function, once.  Gives the result, or NULL with an exception. */
static PyObject *
run_function(struct plus_tasklet *task)
{
    PyObject *value = plus_claim_value(task);
    PyObject *result = NULL;

    task->started = true;
    if (task->sched->watching) {
        plus_interrupts_begin(task->sched);
    }
    settle(task->sched);
    if (plus_is_bomb(value)) { /* killed before it began */
        (void)plus_bomb_explode(value);
    }
    else {
        Py_DECREF(value);
        /* They stay in the tasklet, where the garbage collector sees them. */
        result = PyObject_Call(task->func, task->args, task->kwargs);
    }
    Py_CLEAR(task->func);
    Py_CLEAR(task->args);
    Py_CLEAR(task->kwargs);
    return result;
}

static struct plus_tasklet *
wakes_up(struct plus_scheduler *sched)
{
    return sched->watchdog_count > 0 ? sched->watchdogs[sched->watchdog_count - 1] : sched->main;
}

/* What an exception that leaves a tasklet becomes: a bomb for main, or NULL if nothing is left of it. */
static PyObject *
bomb_for_main(void)
{
    if (PyErr_ExceptionMatches(plus_tasklet_exit)) {
        PyErr_Clear();
        return NULL;
    }
    if (plus_error_handler != NULL) {
        PyObject *value = plus_compat_take_exception();
        PyObject *traceback = PyException_GetTraceback(value);
        PyObject *result =
            PyObject_CallFunctionObjArgs(plus_error_handler, Py_TYPE(value), value,
                                         traceback != NULL ? traceback : Py_None, NULL);

        Py_DECREF(value);
        Py_XDECREF(traceback);
        if (result != NULL) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return plus_bomb_from_error();
}

static bool
others_may_run(struct plus_scheduler *sched)
{
    PyThreadState *tstate =
        PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(sched->tstate));

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        struct plus_scheduler *other = plus_scheduler_of(tstate);

        bool may = other != NULL ? !other->thread_blocked
                                 : plus_foreign_wakers && !plus_deadline_is_ours(tstate);

        if (tstate != sched->tstate && may) {
            return true;
        }
    }
    return false;
}

void
plus_scheduler_wake(struct plus_scheduler *sched)
{
    plus_hub_rouse(sched);
    plus_idle_wake(sched);
}

/* Sleeps until plus_scheduler_wake(), a timer, or a descriptor for which there is no event loop to wait.  0, or -1
 * with what a signal's handler has raised. */
static int
sleep_once(struct plus_scheduler *sched)
{
    uint64_t recheck_ns = plus_now_ns() + RECHECK_NS;
    uint64_t timer_ns = plus_timers_earliest(&sched->timers);
    uint64_t deadline_ns = timer_ns < recheck_ns ? timer_ns : recheck_ns;

    if (sched->io_waiting == 0) {
        return plus_idle_wait(sched, deadline_ns);
    }
    sched->thread_blocked = true;
    plus_poller_wait(sched->poller, deadline_ns);
    sched->thread_blocked = false;
    if (sched->current != NULL) {
        return 0; /* it sees the signals */
    }
    /* No tasklet is current now: a handler may look and wait, but not switch. */
    bool in_callback = sched->in_callback, in_handler = sched->in_handler;

    sched->in_callback = sched->in_handler = true;
    int signals = PyErr_CheckSignals();

    sched->in_callback = in_callback;
    sched->in_handler = in_handler;
    return signals;
}

/* A loop of the program's had taken the place of the one that they wait for, and has ended. */
static void
restore_hub(struct plus_scheduler *sched)
{
    if (sched->hub_asked > 0 && sched->hub == NULL) {
        bool in_callback = sched->in_callback;

        sched->in_callback = true;
        if (plus_hub_ensure(sched) < 0) {
            PyErr_WriteUnraisable(NULL);
        }
        sched->in_callback = in_callback;
    }
}

/* Waits for another thread to make a tasklet of this one runnable.  1: there is one; 0: nobody can; -1: a signal
 * handler has raised. */
static int
wait_for_others(struct plus_scheduler *sched)
{
    int result = 1;

    while (sched->current == NULL) {
        if (sched->watching && plus_watchdog_wake_owner(sched)) {
            break;
        }
        plus_look(sched, plus_now_ns());
        restore_hub(sched);
        if (sched->current != NULL) {
            break;
        }
        if (sched->parked == 0 && !others_may_run(sched)) {
            result = 0;
            break;
        }
        if (sleep_once(sched) < 0) {
            result = -1;
            break;
        }
    }
    return result;
}

/* RuntimeError with the report of what waits for what; NULL: while that was made (Python code runs there),
 * somebody has made a tasklet runnable, so it is no deadlock. */
static PyObject *
deadlock_bomb(struct plus_scheduler *sched, const char *text)
{
    PyObject *exception = PyObject_CallFunction(PyExc_RuntimeError, "s", text);

    if (exception == NULL) {
        return plus_bomb_from_error();
    }
    plus_report_add_note(sched, exception);
    if (sched->current != NULL) {
        Py_DECREF(exception);
        return NULL;
    }
    PyErr_SetObject(PyExc_RuntimeError, exception);
    Py_DECREF(exception);
    return plus_bomb_from_error();
}

/* Who runs after a tasklet that has ended with an exception (bomb, taken) or without one (NULL). */
static struct plus_tasklet *
successor(struct plus_scheduler *sched, PyObject *bomb)
{
    struct plus_tasklet *wakeup = wakes_up(sched);

    if (bomb == NULL && sched->current == NULL && (wakeup->blocked || plus_outside(sched))) {
        int found = wait_for_others(sched);

        if (found < 0) {
            bomb = plus_bomb_from_error();
        }
        else if (found == 0) {
            bomb = deadlock_bomb(sched,
                                 wakeup->blocked < 0
                                     ? "the main tasklet is receiving without a sender available."
                                     : "the main tasklet is sending without a receiver available.");
        }
    }
    if (bomb != NULL) {
        plus_set_value(wakeup, bomb);
        return wakeup;
    }
    return sched->current != NULL ? sched->current : wakeup;
}

/* Puts `next` into the run queue if it is in none or in a channel's. */
static void
make_runnable(struct plus_tasklet *next)
{
    if (next->blocked) {
        plus_channel_remove(next);
        plus_queue_insert(next);
    }
    else if (next->next == NULL) {
        plus_queue_insert((struct plus_tasklet *)Py_NewRef(next));
    }
}

/* It may be an error, by the program's filters: that is told, and what was to begin begins nevertheless. */
static void
warn_of_small_stacks(struct plus_scheduler *sched, size_t wanted)
{
    bool outer = sched->in_callback;

    sched->in_callback = true;
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "not enough address space for C stacks of %zu KiB (ulimit -v, "
                         "vm.overcommit_memory): tasklets get %zu KiB from now on",
                         wanted >> 10, sched->stacks.stack_bytes >> 10) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
    sched->in_callback = outer;
}

int
plus_make_ready(struct plus_tasklet *task)
{
    if (task->stack != NULL || task->started) {
        return 0;
    }
    struct plus_stack_pool *stacks = &task->sched->stacks;

    if (stacks->in_use >= task->sched->trim_at) {
        plus_scheduler_trim(task->sched, TRIM_PARKED_NS);
        task->sched->trim_at = stacks->in_use + stacks->in_use / 4;
    }
    size_t bytes = stacks->stack_bytes;

    if (!task->sched->stacks_fit && plus_new_stack_bytes == 0) {
        plus_stacks_resize(stacks, afford(bytes));
    }
    task->sched->stacks_fit = true;
    task->stack = plus_stack_take(stacks, task);
    if (task->stack == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (stacks->stack_bytes < bytes) {
        warn_of_small_stacks(task->sched, bytes);
    }
    return 0;
}

static void
tasklet_entry(void);

static void
prepare_stack(struct plus_tasklet *task)
{
    plus_fiber_fresh(&task->fiber, task->sched->tstate, task->stack);
    task->fiber.sp = plus_switch_prepare(task->stack->top, tasklet_entry);
}

/* Whoever has no place on a stack to go on from gets one. */
static inline void
place(struct plus_tasklet *task)
{
    if (task->fiber.sp == NULL) {
        if (task->cold != NULL) {
            plus_tasklet_warm(task);
        }
        else {
            prepare_stack(task);
        }
    }
}

/* Takes a reference to who runs next.  The callback, or another thread meanwhile, may have removed it. */
static inline void
insist_on(struct plus_tasklet *next, const struct plus_tasklet *prev)
{
    if (!plus_is_floating(next)) {
        Py_DECREF(next);
    }
    else if (plus_is_runnable(prev)) {
        plus_queue_insert_next(next);
    }
    else {
        plus_queue_insert(next);
    }
}

/* The end of `task`, which is current; its result or exception is dealt with.  Returns where the next tasklet is a
 * new one and has taken over this C stack. */
static void
leave(struct plus_scheduler *sched, struct plus_tasklet *task, struct plus_tasklet *next)
{
    Py_INCREF(next);
    if (plus_schedule_hook != NULL) {
        plus_call_schedule_hook(sched, task, next);
        plus_pystate_end(sched->tstate); /* debuggers' hooks set tracers */
    }
    plus_pystate_drop_context(sched->tstate); /* of a signal handler, if there is one again */
    insist_on(next, task);
    if (sched->watching) {
        plus_watchdog_entering(sched, next);
    }
    sched->finished = task;
    sched->current = sched->running = next;
    if (!next->started && next->stack == NULL) {
        next->stack = task->stack;
        next->stack->owner = next;
        task->stack = NULL;
        plus_fiber_fresh(&next->fiber, sched->tstate, next->stack);
        plus_pystate_load(sched->tstate, &next->fiber.state);
        return;
    }
    place(next);
    plus_fiber_leave(sched->tstate, &next->fiber);
}

static void
tasklet_entry(void)
{
    plus_fiber_arrived();
    for (;;) {
        struct plus_scheduler *sched = plus_scheduler_own;
        struct plus_tasklet *task = sched->running;
        PyObject *result = run_function(task);
        PyObject *bomb = result == NULL ? bomb_for_main() : NULL;

        Py_XDECREF(result);
        plus_pystate_end(sched->tstate); /* may run destructors, for which it is still current */
        plus_queue_remove(task);         /* its reference goes to `finished` */
        /* Signal handlers and other threads may run while a successor is waited for: nobody is to insert it. */
        task->alive = false;
        struct plus_tasklet *next = successor(sched, bomb);

        make_runnable(next);
        if (sched->watching) {
            next = plus_watchdog_switching(sched, task, next);
        }
        leave(sched, task, next);
    }
}

static void
switch_now(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
           PyObject **result)
{
    if (sched->watching) {
        next = plus_watchdog_switching(sched, prev, next);
    }
    if (prev == next) {
        sched->current = next;
    }
    else {
        if (plus_schedule_hook != NULL) {
            Py_INCREF(next);
            plus_call_schedule_hook(sched, prev, next);
            insist_on(next, prev);
            if (sched->watching) {
                plus_watchdog_entering(sched, next);
            }
        }
        place(next);
        sched->current = sched->running = next;
        plus_fiber_switch(sched->tstate, &prev->fiber, &next->fiber);
        plus_instrument_if_changed(sched);
    }
    PyObject *value = plus_claim_value(prev);

    settle(sched); /* may run Python code, so the value is in safety */
    *result = plus_value_or_raise(value);
}

static int
schedule_in_other_thread(struct plus_tasklet *prev, struct plus_tasklet *next, PyObject **result)
{
    if (next->sched->tstate == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "tasklet has no thread");
        return -1;
    }
    make_runnable(next);
    plus_scheduler_wake(next->sched);
    *result = plus_value_or_raise(plus_claim_value(prev));
    return 0;
}

/* Nothing is runnable: wake who called run(), or wait for other threads, or it is a deadlock. */
static int
schedule_nobody(struct plus_scheduler *sched, struct plus_tasklet *prev, PyObject **result)
{
    struct plus_tasklet *wakeup = wakes_up(sched);
    bool revive = plus_is_floating(wakeup) && !sched->threadblock && !plus_outside(sched);
    int found = revive ? 0 : wait_for_others(sched);

    if (found < 0) {
        if (wakeup == prev) {
            return -1;
        }
        plus_set_value(wakeup, plus_bomb_from_error()); /* whoever waited last has no part in it */
        return plus_schedule(sched, prev, wakeup, result);
    }
    if (found > 0) {
        return plus_schedule(sched, prev, sched->current, result);
    }
    if (plus_is_floating(wakeup)) {
        if (wakeup != prev && plus_is_bomb(prev->tempval)) {
            plus_set_value(wakeup, Py_NewRef(prev->tempval));
        }
        return plus_schedule(sched, prev, wakeup, result);
    }
    PyObject *bomb = deadlock_bomb(sched, "Deadlock: the last runnable tasklet cannot be blocked.");

    if (bomb == NULL) {
        return plus_schedule(sched, prev, sched->current, result);
    }
    plus_set_value(prev, bomb);
    return plus_schedule(sched, prev, prev, result);
}

int
plus_schedule(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
              PyObject **result)
{
    *result = NULL;
    if ((plus_outside(sched) || plus_loop_waits(sched)) && sched->look_in-- == 0) {
        plus_look_soon(sched);
        next = next != NULL ? next : sched->current;
    }
    if (next == NULL) {
        return schedule_nobody(sched, prev, result);
    }
    if (next->sched != sched && next != prev) {
        return schedule_in_other_thread(prev, next, result);
    }
    if (next != prev) {
        if (sched->switch_trap) {
            PyErr_SetString(PyExc_RuntimeError, "switch_trap");
            return -1;
        }
        if (is_over()) { /* to wait alone is no harm */
            PyErr_SetString(plus_compat_finalization_error(),
                            "cannot switch tasklets at interpreter finalization");
            return -1;
        }
        if (refuse_here(sched)) {
            return -1;
        }
        if (!next->started && plus_make_ready(next) < 0) {
            return -1;
        }
    }
    make_runnable(next);
    if (sched->hub_due) {
        plus_hub_bring(sched, next);
    }
    switch_now(sched, prev, next, result);
    return 0;
}

PyObject *
plus_schedule_current(struct plus_scheduler *sched, PyObject *value, bool remove)
{
    struct plus_tasklet *prev = sched->running;
    struct plus_tasklet *next = prev->next;
    PyObject *result, *old;

    if (plus_refuse_in_callback(sched) || plus_raise_due(prev)) {
        return NULL;
    }
    old = prev->tempval;
    prev->tempval = Py_NewRef(value);
    if (remove) {
        prev->parked_ns = plus_now_coarse_ns();
        plus_queue_remove(prev);
        next = sched->current;
        /* Held until the switch is done: then nobody may be left who wants it. */
        sched->after_switch = (PyObject *)prev;
    }
    if (plus_schedule(sched, prev, next, &result) < 0) {
        plus_set_value(prev, old);
        if (remove) {
            sched->after_switch = NULL;
            plus_queue_take_back(prev);
        }
        return NULL;
    }
    Py_DECREF(old);
    return result;
}

/* ---- run() ------------------------------------------------------------------------------------ */

static int
push_watchdog(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    if (sched->watchdog_count == sched->watchdog_room) {
        int room = sched->watchdog_room * 2 + 4;
        struct plus_tasklet **more = realloc(sched->watchdogs, (size_t)room * sizeof(*more));

        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        sched->watchdogs = more;
        sched->watchdog_room = room;
    }
    sched->watchdogs[sched->watchdog_count++] = (struct plus_tasklet *)Py_NewRef(task);
    return 0;
}

bool
plus_called_run(const struct plus_scheduler *sched, const struct plus_tasklet *task)
{
    for (int i = 0; i < sched->watchdog_count; i++) {
        if (sched->watchdogs[i] == task) {
            return true;
        }
    }
    return false;
}

/* Back in `task`: it and those that called run() after it have nothing to wait for any more. */
static void
pop_watchdogs(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    while (plus_called_run(sched, task)) {
        struct plus_tasklet *popped = sched->watchdogs[--sched->watchdog_count];

        if (popped == sched->watch.owner && popped != task) {
            plus_watchdog_end(sched);
        }
        if (plus_is_floating(popped)) {
            plus_queue_insert(popped);
        }
        else {
            Py_DECREF(popped);
        }
    }
}

int
plus_run(struct plus_scheduler *sched, bool threadblock)
{
    struct plus_tasklet *caller = sched->running;
    bool outer = sched->threadblock;
    PyObject *result;

    if (plus_refuse_in_callback(sched)) {
        return -1;
    }
    if (push_watchdog(sched, caller) < 0) {
        return -1;
    }
    sched->threadblock = threadblock;
    plus_queue_remove(caller);
    Py_DECREF(caller); /* the queue's; the watchdogs have one */
    if (sched->current == NULL && !threadblock && !plus_outside(sched)) {
        plus_queue_unremove((struct plus_tasklet *)Py_NewRef(caller));
        result = Py_NewRef(Py_None);
    }
    else if (plus_schedule(sched, caller, sched->current, &result) < 0) {
        sched->threadblock = outer;
        sched->watchdog_count--;
        plus_queue_take_back(caller);
        return -1;
    }
    sched->threadblock = outer;
    pop_watchdogs(sched, caller);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}
