/* Which tasklet of a thread runs next, and the going there.
 *
 * All with the GIL held.  What says "takes" consumes a reference, what says "gives" returns one.
 * Semantics: Stackless Python 3.x, Stackless/module/scheduling.c.
 */
#ifndef PLUS_TASKLETS_SCHEDULER_H
#define PLUS_TASKLETS_SCHEDULER_H

#include "../_interp/frames.h"
#include "tasklet.h"

#include "../_base/identity.h"

extern _Thread_local struct plus_scheduler *plus_scheduler_own PLUS_FAST_TLS;
extern PyObject *plus_tasklet_exit;  /* the exception TaskletExit */
extern PyObject *plus_error_handler; /* or NULL */
extern PyObject *plus_schedule_hook; /* or NULL */
extern PyObject *plus_channel_hook;  /* or NULL */
/* Whether threads that have never used tasklets may still do so: then nothing is a deadlock beside them. */
extern bool plus_foreign_wakers;
extern size_t
    plus_new_stack_bytes; /* of schedulers made from now on; 0: plus_default_stack_bytes() */

/* What a thread that is started now gets: threading.stack_size(), else what the C library takes from RLIMIT_STACK. */
size_t
plus_default_stack_bytes(void);

/* Makes this thread's scheduler and its main tasklet.  NULL with an exception. */
struct plus_scheduler *
plus_scheduler_make(void);

static inline struct plus_scheduler *
plus_scheduler_get(void)
{
    struct plus_scheduler *sched = plus_scheduler_own;

    return sched != NULL ? sched : plus_scheduler_make();
}

/* The scheduler of a thread state or of a thread's identity, or NULL. */
struct plus_scheduler *
plus_scheduler_of(PyThreadState *tstate);
struct plus_scheduler *
plus_scheduler_of_thread(unsigned long ident);

/* Tasklets keep their scheduler's memory. */
void
plus_scheduler_release(struct plus_scheduler *sched);

/* Kills what has a C stack, as at a thread's end.  Exceptions go to sys.unraisablehook. */
void
plus_scheduler_kill_all(struct plus_scheduler *sched);

/* The interpreter's end, before anything is taken apart: kills the tasklets of this thread, gives up those that
 * do not end, and refuses to switch any once the interpreter finalises. */
void
plus_schedulers_end(void);

/* Calls `each` for every tasklet that has begun and has not ended, but for main, until that returns something
 * else than 0, which is returned; else 0.  `each` must not begin, end or switch tasklets. */
int
plus_scheduler_each(struct plus_scheduler *sched, int (*each)(struct plus_tasklet *, void *),
                    void *arg);

/* ---- the run queue: circular, `current` first; takes a reference, remove gives it ---- */

static inline void
plus_queue_link(struct plus_tasklet *task, struct plus_tasklet *before)
{
    task->next = before;
    task->prev = before->prev;
    before->prev->next = task;
    before->prev = task;
}

/* At the end: before current. */
static inline void
plus_queue_insert(struct plus_tasklet *task)
{
    struct plus_scheduler *sched = task->sched;

    if (sched->current == NULL) {
        task->next = task->prev = task;
        sched->current = task;
    }
    else {
        plus_queue_link(task, sched->current);
    }
    sched->runcount++;
}

/* Right behind current, which must be there. */
static inline void
plus_queue_insert_next(struct plus_tasklet *task)
{
    plus_queue_link(task, task->sched->current->next);
    task->sched->runcount++;
}

static inline void
plus_queue_remove(struct plus_tasklet *task)
{
    struct plus_scheduler *sched = task->sched;

    if (task->next == task) {
        sched->current = NULL;
    }
    else {
        task->next->prev = task->prev;
        task->prev->next = task->next;
        if (sched->current == task) {
            sched->current = task->next;
        }
    }
    task->next = task->prev = NULL;
    sched->runcount--;
}

/* Puts a removed current back to where it was. */
static inline void
plus_queue_unremove(struct plus_tasklet *task)
{
    plus_queue_insert(task);
    task->sched->current = task;
}

/* The same, with the queue's reference, where threads or a signal's handler may have run since: one of them may
 * have put it back already. */
static inline void
plus_queue_take_back(struct plus_tasklet *task)
{
    if (task->next == NULL) {
        plus_queue_unremove(task);
    }
    else {
        task->sched->current = task;
        Py_DECREF(task);
    }
}

/* In no queue at all. */
static inline bool
plus_is_floating(const struct plus_tasklet *task)
{
    return task->next == NULL && !task->blocked;
}

static inline bool
plus_is_runnable(const struct plus_tasklet *task)
{
    return task->next != NULL && !task->blocked;
}

/* The one that its thread runs. */
static inline bool
plus_is_running(const struct plus_tasklet *task)
{
    return task->sched->tstate != NULL && task->sched->running == task;
}

/* A callback is told that it runs next: no code, in whatever thread, may take away what it is to run. */
static inline bool
plus_is_coming(const struct plus_tasklet *task)
{
    return task->sched->coming == task;
}

/* On a C stack of its own, and not running: nobody but the garbage collector sees what it refers to. */
static inline bool
plus_is_parked(const struct plus_tasklet *task)
{
    return task->stack != NULL && task->started && task->alive && task->sched->tstate != NULL &&
           task->sched->running != task;
}

/* ---- values ---- */

/* Gives tempval, and leaves None. */
static inline PyObject *
plus_claim_value(struct plus_tasklet *task)
{
    PyObject *value = task->tempval;

    task->tempval = Py_NewRef(Py_None);
    return value;
}

/* Takes value. */
static inline void
plus_set_value(struct plus_tasklet *task, PyObject *value)
{
    PyObject *old = task->tempval;

    task->tempval = value;
    Py_DECREF(old);
}

/* Takes what a call gave that nobody waits for; its exception goes to sys.unraisablehook, with `place`. */
static inline void
plus_drop_result(PyObject *result, PyObject *place)
{
    if (result == NULL) {
        PyErr_WriteUnraisable(place);
    }
    Py_XDECREF(result);
}

/* ---- bombs: exceptions on their way into a tasklet (bomb.c) ---- */

/* What plus_bomb_from_error() falls back on.  -1 with MemoryError. */
int
plus_bomb_prepare(void);
/* Of the current exception, which is cleared; never NULL: of MemoryError in its place if there is no memory. */
PyObject *
plus_bomb_from_error(void);
/* As `raise` has it: class or instance, value, traceback (NULL or None: not given).  NULL with an exception. */
PyObject *
plus_bomb_from_triple(PyObject *exc, PyObject *value, PyObject *traceback);
/* args: a class, and what it is to be called with. */
PyObject *
plus_bomb_from_class(PyObject *args, const char *who);
/* Takes the bomb; returns NULL with its exception set. */
PyObject *
plus_bomb_explode(PyObject *bomb);

/* Takes a value; a bomb explodes: NULL with its exception. */
static inline PyObject *
plus_value_or_raise(PyObject *value)
{
    return plus_is_bomb(value) ? plus_bomb_explode(value) : value;
}

/* What the running tasklet is to get before it switches or waits: thrown by another thread while it ran, or by a
 * timer while it was runnable and may have been given something.  True: an exception is set. */
static inline bool
plus_raise_due(struct plus_tasklet *task)
{
    if (plus_is_bomb(task->tempval)) {
        (void)plus_bomb_explode(plus_claim_value(task));
        return true;
    }
    if (task->due != NULL) {
        PyObject *due = task->due;

        task->due = NULL;
        PyErr_SetObject((PyObject *)Py_TYPE(due), due);
        Py_DECREF(due);
        return true;
    }
    return false;
}

/* ---- switching ---- */

/* Makes a tasklet able to run: gives it a C stack.  0, or -1 with MemoryError. */
int
plus_make_ready(struct plus_tasklet *task);

/* Makes those of a thread's tasklets cold that have been out of the run queue for so long; gives their number. */
size_t
plus_scheduler_trim(struct plus_scheduler *sched, uint64_t parked_ns);

/* Gives a cold tasklet its stack back, with its content where it was; else nothing. */
void
plus_tasklet_warm(struct plus_tasklet *task);

/* Leaves `prev`, which is running, for `next` (NULL: nothing is runnable).  Returns when prev runs again: 0,
 * and *result is its tempval, or NULL with the exception that was sent to it; or -1 with an exception if
 * nothing was done, and the caller undoes what it has prepared. */
int
plus_schedule(struct plus_scheduler *sched, struct plus_tasklet *prev, struct plus_tasklet *next,
              PyObject **result);

/* schedule() and schedule_remove().  Gives the value, or NULL with an exception. */
PyObject *
plus_schedule_current(struct plus_scheduler *sched, PyObject *value, bool remove);

/* run() as plus_watchdog_run() does it.  0, or -1 with an exception. */
int
plus_run(struct plus_scheduler *sched, bool threadblock);

/* Whether the tasklet waits in run(), or runs inside of it. */
bool
plus_called_run(const struct plus_scheduler *sched, const struct plus_tasklet *task);

/* Makes a thread look at its queue again, if it waits for other threads. */
void
plus_scheduler_wake(struct plus_scheduler *sched);

/* Calls the schedule callback; its exceptions go to sys.unraisablehook. */
void
plus_call_schedule_hook(struct plus_scheduler *sched, struct plus_tasklet *prev,
                        struct plus_tasklet *next);

/* True, with RuntimeError, while the running tasklet is in the run queue no more: it is about to wait or to end, and
 * a value that it lets go on its way, or the garbage collector, calls a finaliser. */
bool
plus_refuse_leaving(const struct plus_scheduler *sched);

/* The same, and inside of a callback: nothing may be switched there. */
bool
plus_refuse_in_callback(const struct plus_scheduler *sched);

/* Has the thread keep the GIL while the running tasklet is atomic, and not else. */
void
plus_scheduler_hold_gil(struct plus_scheduler *sched, bool hold);

static inline void
plus_follow_atomic(struct plus_scheduler *sched)
{
    bool hold = sched->running->atomic && sched->running != sched->own_hub;

    if (hold != sched->holds_gil) {
        plus_scheduler_hold_gil(sched, hold);
    }
}

/* ---- tasklets (tasklet.c): 0 or -1 with an exception, with Stackless's wording ---- */

int
plus_tasklet_insert(struct plus_tasklet *task);
int
plus_tasklet_remove(struct plus_tasklet *task);
PyObject *
plus_tasklet_run(struct plus_tasklet *task, bool remove_current);
/* Takes the bomb. */
PyObject *
plus_tasklet_throw(struct plus_tasklet *task, bool pending, PyObject *bomb);
PyObject *
plus_tasklet_kill(struct plus_tasklet *task, bool pending);
/* Has it never run again, nor end: its frames stay as they are, for ever, and so does it.  Not for the running one. */
void
plus_tasklet_abandon(struct plus_tasklet *task);
int
plus_tasklet_bind(struct plus_tasklet *task, PyObject *func, PyObject *args, PyObject *kwargs);
/* Takes args (a tuple) and kwargs (a dict or NULL). */
int
plus_tasklet_setup(struct plus_tasklet *task, PyObject *args, PyObject *kwargs, bool insert);
/* The interpreter frames of a parked one; of whichever, none if it has not begun or has ended. */
struct plus_frames
plus_tasklet_frames(const struct plus_tasklet *task);
struct plus_frames
plus_tasklet_frames_now(const struct plus_tasklet *task);
/* A main tasklet for the scheduler that is being made; NULL with an exception. */
struct plus_tasklet *
plus_tasklet_make_main(struct plus_scheduler *sched);

/* ---- channels (channel.c) ---- */

void
plus_channel_remove(struct plus_tasklet *task); /* gives the queue's reference */
void
plus_channel_insert(struct plus_channel *channel, struct plus_tasklet *task, int direction,
                    struct plus_tasklet *before); /* takes a reference; before NULL: at the end */
/* tp_traverse's and tp_clear's part for objects that begin with a channel; the tasklets in it get out of it. */
int
plus_channel_traverse(PyObject *op, visitproc visit, void *arg);
int
plus_channel_clear(PyObject *op);
/* tp_dealloc's, after what is the object's own; made_at's getter; __reduce__ of what cannot be copied. */
void
plus_channel_dealloc(PyObject *op);
PyObject *
plus_channel_made_at(PyObject *op, void *ignored);
PyObject *
plus_refuse_pickling(PyObject *op, PyObject *ignored);
/* Lets all out who are in it, and gives them up. */
void
plus_channel_empty(struct plus_channel *channel);
/* Takes the value. */
PyObject *
plus_channel_action(struct plus_channel *channel, PyObject *value, int direction);

#endif
