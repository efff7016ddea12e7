/* What the files of this room share: tasklets, channels, and the scheduler that each thread has.
 *
 * Everything here is called with the GIL held.  The words are Stackless Python's: a tasklet is *current*, *runnable*
 * (in the circular queue of its scheduler), *blocked* (in a channel's queue) or *floating* (in none).
 *
 * The files are in layers, and call downwards only:
 *
 *     stacks, switch_*, timers        C stacks and dead lines: nothing of Python
 *     fiber                           a C stack with the part of the thread state that goes with it
 *     task, lists, bomb               this file; who is in which queue; exceptions on their way
 *     cold, own_stack, instrument,
 *     interrupts, tracing             what a tasklet needs before it goes on
 *     switching                       who runs next, and the going there
 *     channel, tasklet, parking,
 *     locks                           the reasons to switch
 *     deadline, watchdog, loop,
 *     poller, hub, idle               what makes one runnable from outside: times, descriptors, threads
 *     outside, run, thread            nothing is runnable; run(); a thread's beginning and end
 *     *_py                            what Python sees
 *
 * Below, switching needs some of what lies above it: struct plus_above has all of that.
 */
#ifndef PLUS_TASKLETS_TASK_H
#define PLUS_TASKLETS_TASK_H

#include "../../_base/compat.h"
#include "../../_interp/frames/frames.h"
#include "../../threads/waiting/waitq.h"
#include "../stacks/fiber.h"
#include "timers.h"

#include <stdint.h>

struct plus_scheduler;
struct plus_poller;

struct plus_tasklet {
    PyObject_HEAD
        /* Links of the run queue, which is a circle, or of a channel's queue, which ends with NULL; that queue
     * owns a reference to the tasklet.  Both NULL and not blocked: in neither. */
        struct plus_tasklet *next,
        *prev;
    PyObject *tempval;            /* what goes in or comes out at the next switch; never NULL */
    struct plus_scheduler *sched; /* of its thread; its tstate is NULL when that has ended */
    struct plus_channel *channel; /* that it is blocked on (borrowed: the queue's owner), or NULL */
    PyObject *func, *args,
        *kwargs;              /* to be called, or being called; NULL: no arguments yet, or ended */
    struct plus_stack *stack; /* NULL: main, not started, or finished */
    struct plus_slice *cold;  /* what was in use of its stack, which has no pages now; or NULL */
    struct plus_fiber fiber;
    PyObject *weakrefs;
    struct plus_tasklet *vacated_prev, *vacated_next; /* of its scheduler's list */
    uint64_t parked_ns; /* coarse monotonic time at which it left the run queue; 0: never */
    struct plus_timer timer;
    unsigned char parked; /* see parking.c */
    signed char blocked;  /* 1: sending, -1: receiving or parked */
    bool alive;           /* bound with arguments and not finished, or main */
    bool started;         /* has Python frames or a C stack */
    bool is_main;
    bool abandoned;     /* never runs again, see plus_tasklet_abandon() */
    bool awaits;        /* counted in its scheduler's io.waiting */
    bool uncalled;      /* parked from inside of a finaliser; see frames.h */
    bool between;       /* parked by a watchdog between two instructions; see frames.h */
    bool own_context;   /* given before its arguments were */
    bool has_greenlets; /* fence.c's: some may have copies of what lies on its C stack */
    bool vacated;       /* has begun, and was taken off its C stack; see vacating.c */
    bool atomic, ignore_nesting, block_trap;
    PyObject *thrown;     /* exception that its next instruction is to raise; see interrupts.c */
    PyObject *due;        /* exception that it gets when it next switches or waits, or NULL */
    unsigned pending_irq; /* serial of the watch that could not interrupt it yet, or 0 */
#if PY_VERSION_HEX < 0x030C0000
    Py_tracefunc own_trace; /* what the watchdog's trace function stands in front of, or NULL */
#endif
};

struct plus_channel {
    PyObject_HEAD struct plus_tasklet *head, *tail;
    int balance; /* > 0: so many senders wait; < 0: receivers */
    signed char preference;
    bool schedule_all, closing;
    const char *waits; /* what is said of who waits in it, static; NULL: a channel */
    int descriptor;    /* that they wait for; -1: none */
    PyObject *made_by; /* code object that made it, or NULL */
    int made_at;       /* offset in it, in bytes */
    PyObject *weakrefs;
};

/* ---- the scheduler: each part is written by the files that it names ---- */

/* switching.c's. */
struct plus_turn {
    struct plus_tasklet *coming;   /* who runs after the callback that is called now, or NULL */
    struct plus_tasklet *finished; /* ended just now; its stack is given back after the switch */
    PyObject *after_switch;        /* let go after the switch */
    int trap;                      /* above 0: switching raises RuntimeError */
    bool holds_gil;                /* for a tasklet with the flag `atomic` */
    bool in_section;               /* and that could be done */
    uint64_t instrumented;         /* see instrument.h */
    struct plus_tasklet *leaving; /* it leaves its C stack, and `running` goes on; see vacating.c */
    struct plus_tasklet *seated;  /* the same of one that gets a C stack */
};

/* run.c's: calls of run() that have not come back. */
struct plus_runs {
    struct plus_tasklet **callers; /* innermost last; strong */
    int count, room;
    bool threadblock; /* the innermost is run(threadblock=True) */
};

/* watchdog.c's, but deadline_ns: deadline.c's. */
struct plus_watch {
    struct plus_tasklet *owner;  /* called run(); borrowed from `runs`; NULL: no watch */
    struct plus_tasklet *victim; /* interrupted just now, for the owner; strong */
    uint64_t deadline_ns;        /* monotonic; 0: none, or passed */
    long interval, left;         /* events until the time-out; interval 0: by time */
    bool on;                     /* there is an owner */
    unsigned serial;             /* tells this watch from others; never 0 */
    int pause;                   /* events until nesting is looked at again */
    unsigned refusals;           /* because of nesting */
    bool soft, ignore_nesting, total;
    bool due;      /* the time-out of all of them together has passed */
    bool counting; /* events are being reported */
    bool stay;     /* the switch that comes next is not to be diverted; written by channel.c */
#if PY_VERSION_HEX < 0x030C0000
    const void
        *last_frame; /* where the last event was, and at which offset in bytes: only compared */
    int last_offset;
#endif
};

/* parking.c's; plus_channel_remove() takes out who leaves. */
struct plus_parking_lot {
    uint32_t count; /* how many of its tasklets wait in plus_park() */
    struct plus_timers timers;
    struct plus_channel *sleepers; /* or NULL */
};

/* poller.c's; of `sleeps` hub.c's, too; of `eager` hub.c's and parking.c's. */
struct plus_readiness {
    struct plus_poller *poller;       /* or NULL */
    bool sleeps;                      /* the thread does, without a loop */
    uint32_t waiting;                 /* how many tasklets wait for descriptors */
    const struct plus_tasklet *eager; /* has not waited since eager_ns; only compared */
    uint64_t eager_ns;                /* on the coarse clock */
};

/* loop.c's and hub.c's. */
struct plus_loop {
    struct plus_tasklet
        *hub; /* that gives the others their turns in an event loop now, borrowed; or NULL */
    struct plus_tasklet *own_hub; /* of cpythonplus.tasklets.io._hub, a reference; or NULL */
    PyObject *loops;              /* what that file keeps for the thread, or NULL */
    struct plus_channel *askers;  /* who waits for a coroutine; or NULL */
    uint32_t asked;               /* how many wait for asyncio */
    uint32_t look_in;             /* switches until it is time to look at timers and descriptors */
    uint64_t looked_ns;
    uint64_t turn_ns; /* when the hub began to let the others run */
    bool rests;       /* the hub is out of the run queue: nobody waits for a descriptor */
    bool sleeps;      /* the loop waits for its descriptors */
    bool owed;        /* the loop was roused, and has not had its turn since */
    bool due; /* the loop is to get its turn before the other tasklets have all had theirs */
};

/* idle.c's. */
struct plus_idle {
    struct plus_waitq line; /* its thread, while it waits */
    bool blocked;           /* waits for another thread to make a tasklet runnable */
    bool resting;           /* outside.c's: nothing of it runs before it has looked at the queue */
};

/* One for each thread that has used tasklets; lives as long as its thread state, and as its tasklets. */
struct plus_scheduler {
    PyThreadState *tstate; /* NULL: it has ended */
    struct plus_tasklet *main;
    struct plus_tasklet
        *current; /* first of the run queue, whose references it owns; NULL: empty */
    struct plus_tasklet *running; /* the same, but for moments in which it has left the queue */
    int runcount;                 /* length of the run queue, with current */
    bool
        in_callback; /* inside a channel or schedule callback, or a handler: nothing may be switched */
    bool in_handler;       /* of a signal that came while all of the thread waited */
    struct plus_turn turn; /* each switch looks at these four */
    struct plus_parking_lot parking;
    struct plus_readiness io;
    struct plus_loop loop;
    struct plus_watch watch;
    struct plus_runs runs;
    struct plus_idle idle;
    struct plus_stack_pool stacks;
    struct plus_tasklet *vacated; /* first of those that are without a C stack, borrowed; or NULL */
    struct {                      /* own_stack.c's */
        size_t trim_at; /* stacks in use at which it is worthwhile to look for cold ones again */
        bool fits;      /* their size, to the address space */
    } room;
    void *signal_stack;                    /* ours, for SIGSEGV; or NULL */
    Py_ssize_t references;                 /* of its thread and of its tasklets */
    struct plus_scheduler *next_scheduler; /* chain of all, for threads and dumps */
    struct plus_scheduler **link;          /* what points to this one in the chain */
};

/* What switching needs of the layers above it; set once, by plus_threads_prepare(). */
struct plus_above {
    /* Makes the calling thread's scheduler.  NULL with an exception. */
    struct plus_scheduler *(*make)(void);
    /* After a number of switches: makes those runnable whose time has come or whose descriptors are ready. */
    void (*look_soon)(struct plus_scheduler *);
    /* Nothing is runnable.  1: something is now; 0: nobody can make it; -1: a signal's handler has raised. */
    int (*wait)(struct plus_scheduler *);
    /* The bomb for that; NULL: something has become runnable meanwhile. */
    PyObject *(*deadlock)(struct plus_scheduler *, const char *text);
    /* Has the thread look at its queue again, if it waits. */
    void (*wake)(struct plus_scheduler *);
    /* While it has a watch: before a switch (gives who really runs next), and right before it. */
    struct plus_tasklet *(*switching)(struct plus_scheduler *, struct plus_tasklet *prev,
                                      struct plus_tasklet *next);
    void (*entering)(struct plus_scheduler *, struct plus_tasklet *next);
    /* The same, of what is below switching: the running tasklet comes to a place where it can be interrupted (0, or -1 with
     * an exception); the watch's time has passed. */
    int (*event)(struct plus_scheduler *, bool counts);
    void (*expire)(struct plus_scheduler *);
    /* Takes those of the calling thread's tasklets off their C stacks that have been out of the run queue for so long,
     * where that can be done, about so many at most; gives their number. */
    size_t (*vacate)(struct plus_scheduler *, uint64_t parked_ns, size_t most);
};
extern struct plus_above plus_above;

extern _Thread_local struct plus_scheduler *plus_scheduler_own PLUS_FAST_TLS;
extern struct plus_scheduler *plus_schedulers; /* all, newest first */
extern PyObject *plus_tasklet_exit;            /* the exception TaskletExit */

static inline struct plus_scheduler *
plus_scheduler_get(void)
{
    struct plus_scheduler *sched = plus_scheduler_own;

    return sched != NULL ? sched : plus_above.make();
}

/* Makes a thread look at its queue again, if it waits for other threads or for its loop. */
static inline void
plus_scheduler_wake(struct plus_scheduler *sched)
{
    plus_above.wake(sched);
}

/* The scheduler of a thread state or of a thread's identity, or NULL. */
struct plus_scheduler *
plus_scheduler_of(PyThreadState *tstate);
struct plus_scheduler *
plus_scheduler_of_thread(unsigned long ident);

/* Tasklets keep their scheduler's memory. */
void
plus_scheduler_release(struct plus_scheduler *sched);

/* False: its last reference is gone, and what runs while it is being freed (a finaliser, what was in its dict) has
 * met it.  It must not be freed a second time. */
static inline bool
plus_is_in_use(const struct plus_tasklet *task)
{
    return Py_REFCNT((PyObject *)task) > 0;
}

/* Calls `each` for every tasklet that has begun and has not ended, but for main, until that returns something
 * else than 0, which is returned; else 0.  `each` must not begin, end or switch tasklets. */
int
plus_scheduler_each(struct plus_scheduler *sched, int (*each)(struct plus_tasklet *, void *),
                    void *arg);

/* It has something to lose: frames that have begun, on a C stack or without one. */
static inline bool
plus_has_begun(const struct plus_tasklet *task)
{
    return task->alive && (task->started || task->vacated);
}

/* It is, or is no more, one that was taken off its C stack. */
void
plus_vacated_note(struct plus_tasklet *task);
void
plus_vacated_forget(struct plus_tasklet *task);

/* The interpreter frames of a parked one; of whichever, none if it has not begun or has ended. */
struct plus_frames
plus_tasklet_frames(const struct plus_tasklet *task);
struct plus_frames
plus_tasklet_frames_now(const struct plus_tasklet *task);

/* ---- where it is ---- */

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
    return task->sched->turn.coming == task;
}

/* On a C stack of its own, and not running: nobody but the garbage collector sees what it refers to. */
static inline bool
plus_is_parked(const struct plus_tasklet *task)
{
    return task->stack != NULL && task->started && task->alive && task->sched->tstate != NULL &&
           task->sched->running != task;
}

/* Whether the tasklet waits in run(), or runs inside of it. */
static inline bool
plus_called_run(const struct plus_scheduler *sched, const struct plus_tasklet *task)
{
    for (int i = 0; i < sched->runs.count; i++) {
        if (sched->runs.callers[i] == task) {
            return true;
        }
    }
    return false;
}

/* Whether something outside of the interpreter will make a tasklet runnable: a time, a descriptor. */
static inline bool
plus_outside(const struct plus_scheduler *sched)
{
    return (sched->parking.timers.count | sched->io.waiting | sched->loop.asked) != 0;
}

/* Whether asyncio has something to do here, or may have: tasklets wait for coroutines, or the program runs a loop. */
static inline bool
plus_loop_waits(const struct plus_scheduler *sched)
{
    bool asked = sched->loop.askers != NULL && sched->loop.askers->head != NULL;

    return sched->loop.hub != NULL && (asked || sched->loop.hub != sched->loop.own_hub);
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

#endif
