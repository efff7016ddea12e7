/* The types that the files of this room share: tasklets, channels, and the scheduler of each thread.
 *
 * Everything here is called with the GIL held.  The words are Stackless Python's: a tasklet is *current*, *runnable*
 * (in the circular queue of its scheduler), *blocked* (in a channel's queue) or *floating* (in none).
 *
 * The files are in layers; each calls only the layers above it in this list:
 *
 *     stacks, switch_*, timers    C stacks and deadlines, without Python
 *     fiber                       a C stack with its part of the thread state
 *     task, lists, bomb           this file; the queues; exceptions to be delivered
 *     cold, own_stack, instrument,
 *     interrupts, tracing         preparing a tasklet before it goes on
 *     switching                   which tasklet runs next, and the switch to it
 *     channel, tasklet, parking,
 *     locks                       the reasons to switch
 *     deadline, watchdog, loop,
 *     poller, hub                 events from outside that make a tasklet runnable: times, descriptors, threads
 *     outside, run, thread        nothing is runnable; run(); a thread's beginning and end
 *     *_py                        the Python API
 *
 * Switching needs some functions of later layers: struct plus_above has pointers to all of them.
 */
#pragma once

#include "../../_base/compat.h"
#include "../../_interp/frames/frames.h"
#include "../../threads/waiting/waitq.h"
#include "../stacks/fiber.h"
#include "timers.h"

struct plus_scheduler;
struct plus_poller;

struct plus_tasklet {
    PyObject_HEAD
        /* Links of the run queue, which is a circle, or of a channel's queue, which ends with NULL; the queue
     * owns a reference to the tasklet.  Both NULL and `blocked` 0: in no queue. */
        struct plus_tasklet *next,
        *prev;
    PyObject *tempval;            /* the value passed in or out by the next switch; never NULL */
    struct plus_scheduler *sched; /* of its thread; sched->tstate is NULL once that has ended */
    /* the channel in whose queue it waits (borrowed), or NULL */
    struct plus_channel *channel;
    PyObject *func, *args, *kwargs; /* of the call; NULL: no arguments yet, or ended */
    struct plus_stack *stack;       /* NULL: main, not started, or finished */
    /* copy of the used part of its stack, whose pages were freed; or NULL */
    struct plus_slice *cold;
    struct plus_fiber fiber;
    PyObject *weakrefs;
    struct plus_tasklet *vacated_prev, *vacated_next; /* links of sched->vacated */
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
    bool own_context;   /* its context was set before its arguments were */
    bool has_greenlets; /* fence.c: greenlets may have copies of parts of its C stack */
    bool vacated;       /* has begun, and was taken off its C stack; see vacating.c */
    bool atomic, ignore_nesting, block_trap;
    PyObject *thrown;     /* exception that its next instruction is to raise; see interrupts.c */
    PyObject *due;        /* exception to raise when it next switches or waits, or NULL */
    unsigned pending_irq; /* serial of the watch that could not interrupt it yet, or 0 */
#if PY_VERSION_HEX < 0x030C0000
    Py_tracefunc own_trace; /* trace function that the watchdog's replaces, or NULL */
#endif
};

struct plus_channel {
    PyObject_HEAD struct plus_tasklet *head, *tail;
    int balance; /* > 0: number of waiting senders; < 0: of receivers */
    signed char preference;
    bool schedule_all, closing;
    const char *waits; /* a dump's words for a tasklet that waits here, static; NULL: a channel */
    int descriptor;    /* the descriptor that the tasklets here wait for; -1: none */
    PyObject *made_by; /* code object that made it, or NULL */
    int made_at;       /* offset in that code, in bytes */
    PyObject *weakrefs;
};

/* ---- the scheduler: the comment above each part names the files that write it ---- */

/* Written by switching.c. */
struct plus_turn {
    struct plus_tasklet *coming;   /* the tasklet that runs after the current callback, or NULL */
    struct plus_tasklet *finished; /* has just ended: its stack is released after the switch */
    PyObject *after_switch;        /* reference to drop after the switch */
    int trap;                      /* above 0: switching raises RuntimeError */
    bool holds_gil;                /* for a tasklet with the flag `atomic` */
    bool in_section;               /* holds_gil is set and plus_atomic_hold() succeeded */
    uint64_t instrumented;         /* see instrument.h */
    struct plus_tasklet *leaving;  /* leaves its C stack (vacating.c); then `running` goes on */
    struct plus_tasklet *seated;   /* gets a C stack; then `running` goes on */
};

/* Written by run.c: calls of run() that have not returned. */
struct plus_runs {
    struct plus_tasklet **callers; /* innermost last; strong */
    int count;
    size_t room;
    bool threadblock; /* the innermost is run(threadblock=True) */
};

/* Written by watchdog.c; deadline_ns by deadline.c. */
struct plus_watch {
    struct plus_tasklet *owner;  /* has called run(); borrowed from `runs`; NULL: no watch */
    struct plus_tasklet *victim; /* interrupted just now, for the owner; strong */
    uint64_t deadline_ns;        /* monotonic; 0: none, or passed */
    long interval, left;         /* events until the time-out; interval 0: by time */
    bool on;                     /* there is an owner */
    unsigned serial;             /* the number of this watch; never 0 */
    int pause;                   /* events until nesting is checked again */
    unsigned refusals;           /* interrupts refused because of nesting */
    bool soft, ignore_nesting, total;
    bool due;      /* the total time-out has passed */
    bool counting; /* events are being reported */
    bool stay;     /* do not divert the next switch; written by channel.c */
#if PY_VERSION_HEX < 0x030C0000
    const void *last_frame; /* frame and offset in bytes of the last event: only compared */
    int last_offset;
#endif
};

/* Written by parking.c; plus_channel_remove() removes a tasklet that leaves. */
struct plus_parking_lot {
    uint32_t count; /* number of this scheduler's tasklets in plus_park() */
    struct plus_timers timers;
    struct plus_channel *sleepers; /* or NULL */
};

/* Written by poller.c; `sleeps` by hub.c too, `eager` by hub.c and parking.c too. */
struct plus_readiness {
    struct plus_poller *poller;       /* or NULL */
    bool sleeps;                      /* the thread sleeps in the poller, without a loop */
    uint32_t waiting;                 /* number of tasklets that wait for descriptors */
    const struct plus_tasklet *eager; /* has not waited since eager_ns; only compared */
    uint64_t eager_ns;                /* on the coarse clock */
};

/* Written by loop.c and hub.c. */
struct plus_loop {
    struct plus_tasklet
        *hub; /* runs the other tasklets from inside an event loop now, borrowed; or NULL */
    struct plus_tasklet *own_hub; /* made by cpythonplus.tasklets.io._hub, a reference; or NULL */
    PyObject *loops;              /* the state of that module for this thread, or NULL */
    struct plus_channel *askers;  /* queue of tasklets that wait for a coroutine; or NULL */
    uint32_t asked;               /* number of tasklets that wait for asyncio or another thread */
    uint32_t look_in;             /* switches until timers and descriptors are checked */
    uint64_t looked_ns;
    uint64_t turn_ns; /* when the hub began to let the others run */
    bool rests;       /* the hub is out of the run queue: no tasklet waits for a descriptor */
    bool sleeps;      /* the loop waits for its descriptors */
    bool owed;        /* the loop was roused, and has not had its turn since */
    bool due;         /* the loop gets its turn before the other tasklets have all had theirs */
};

/* Written by waiting/outside.c. */
struct plus_idle {
    struct plus_waitq line; /* holds the scheduler's thread while it waits */
    bool blocked;           /* waits for another thread to make a tasklet runnable */
    bool resting;           /* outside.c: no tasklet runs before the run queue is checked again */
};

/* One for each thread that has used tasklets; freed after its thread state and its tasklets. */
struct plus_scheduler {
    PyThreadState *tstate; /* NULL: the thread has ended */
    struct plus_tasklet *main;
    struct plus_tasklet
        *current; /* first of the run queue, whose references it owns; NULL: empty */
    struct plus_tasklet *running; /* equals current, except while it has left the run queue */
    int runcount;                 /* length of the run queue, with current */
    bool in_callback;      /* in a channel or schedule callback, or a handler: no switching */
    bool in_handler;       /* in a signal handler that runs while the whole thread waits */
    struct plus_turn turn; /* each switch reads this and the next three fields */
    struct plus_parking_lot parking;
    struct plus_readiness io;
    struct plus_loop loop;
    struct plus_watch watch;
    struct plus_runs runs;
    struct plus_idle idle;
    struct plus_stack_pool stacks;
    struct plus_tasklet *vacated; /* list of begun tasklets without a C stack, borrowed; or NULL */
    struct {                      /* written by own_stack.c */
        size_t trim_at;           /* stacks in use at which to look for cold ones again */
        bool fits;                /* the stacks' size fits the address space */
    } room;
    void *signal_stack;                    /* ours, for SIGSEGV; or NULL */
    Py_ssize_t references;                 /* held by its thread and by its tasklets */
    struct plus_scheduler *next_scheduler; /* list of all, for threads and dumps */
    struct plus_scheduler **link;          /* the pointer to this one in that list */
};

/* Functions of later layers that switching needs; set once, by plus_threads_prepare(). */
struct plus_above {
    /* Makes the calling thread's scheduler.  Returns NULL with an exception. */
    struct plus_scheduler *(*make)(void);
    /* Called every few switches: makes tasklets runnable whose time has come or whose descriptor is ready. */
    void (*look_soon)(struct plus_scheduler *);
    /* Waits, since nothing is runnable.  1: a tasklet is runnable; 0: nobody can make one; -1: a signal handler
     * raised. */
    int (*wait)(struct plus_scheduler *);
    /* Returns the bomb for a deadlock; NULL: a tasklet has become runnable meanwhile. */
    PyObject *(*deadlock)(struct plus_scheduler *, const char *text);
    /* Makes the thread check its run queue again, if it waits. */
    void (*wake)(struct plus_scheduler *);
    /* With a watch: `switching` is called before a switch and returns the tasklet that really runs next;
     * `entering` is called right before the switch. */
    struct plus_tasklet *(*switching)(struct plus_scheduler *, struct plus_tasklet *prev,
                                      struct plus_tasklet *next);
    void (*entering)(struct plus_scheduler *, struct plus_tasklet *next);
    /* For layers before switching.  `event`: the running tasklet is at a place where it can be interrupted;
     * returns 0, or -1 with an exception.  `expire`: the watch's time has passed. */
    int (*event)(struct plus_scheduler *, bool counts);
    void (*expire)(struct plus_scheduler *);
    /* Takes tasklets of the calling thread off their C stacks, if they have been out of the run queue for
     * parked_ns and it can be done; about `most` of them.  Returns their number. */
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

/* Makes a thread check its run queue again, if it waits for other threads or for its loop. */
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

/* Drops one reference to a scheduler; each of its tasklets holds one. */
void
plus_scheduler_release(struct plus_scheduler *sched);

/* False: the tasklet is being freed, and code that runs meanwhile (a finaliser, objects of its dict) has found it.
 * It must not be freed a second time. */
static inline bool
plus_is_in_use(const struct plus_tasklet *task)
{
    return Py_REFCNT((PyObject *)task) > 0;
}

/* Calls `each` for every tasklet that has begun and not ended, except main, until `each` returns nonzero; returns
 * that value, or 0.  `each` must not begin, end or switch tasklets. */
int
plus_scheduler_each(struct plus_scheduler *sched, int (*each)(struct plus_tasklet *, void *),
                    void *arg);

/* Whether the tasklet has frames that have begun, on a C stack or without one. */
static inline bool
plus_has_begun(const struct plus_tasklet *task)
{
    return task->alive && (task->started || task->vacated);
}

/* Note and forget that the tasklet was taken off its C stack. */
void
plus_vacated_note(struct plus_tasklet *task);
void
plus_vacated_forget(struct plus_tasklet *task);

/* The interpreter frames of a parked tasklet; _now: of any tasklet, none if it has not begun or has ended. */
struct plus_frames
plus_tasklet_frames(const struct plus_tasklet *task);
struct plus_frames
plus_tasklet_frames_now(const struct plus_tasklet *task);

/* ---- the tasklet's state ---- */

/* Whether the tasklet is in no queue. */
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

/* Whether its thread runs it now. */
static inline bool
plus_is_running(const struct plus_tasklet *task)
{
    return task->sched->tstate != NULL && task->sched->running == task;
}

/* Whether a callback has been given this tasklet as the next one to run: no code, in any thread, may then take away
 * what the tasklet needs to run. */
static inline bool
plus_is_coming(const struct plus_tasklet *task)
{
    return task->sched->turn.coming == task;
}

/* Whether it is on a C stack of its own and not running: only the garbage collector sees the objects that its stack
 * refers to. */
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

/* Whether an event outside of the interpreter will make a tasklet runnable: a time, a descriptor. */
static inline bool
plus_outside(const struct plus_scheduler *sched)
{
    return (sched->parking.timers.count | sched->io.waiting | sched->loop.asked) != 0;
}

/* Whether tasklets wait for coroutines. */
static inline bool
plus_loop_is_asked(const struct plus_scheduler *sched)
{
    return sched->loop.askers != NULL && sched->loop.askers->head != NULL;
}

/* Whether asyncio may have something to do here: tasklets wait for coroutines, or the program runs a loop. */
static inline bool
plus_loop_waits(const struct plus_scheduler *sched)
{
    return sched->loop.hub != NULL &&
           (plus_loop_is_asked(sched) || sched->loop.hub != sched->loop.own_hub);
}

/* ---- values ---- */

/* Returns tempval and replaces it by None. */
static inline PyObject *
plus_claim_value(struct plus_tasklet *task)
{
    PyObject *value = task->tempval;

    task->tempval = Py_NewRef(Py_None);
    return value;
}

/* Takes the reference to `value`. */
static inline void
plus_set_value(struct plus_tasklet *task, PyObject *value)
{
    PyObject *old = task->tempval;

    task->tempval = value;
    Py_DECREF(old);
}

/* Drops the result of a call (takes it); if it is NULL, its exception goes to sys.unraisablehook, with `place`. */
static inline void
plus_drop_result(PyObject *result, PyObject *place)
{
    if (result == NULL) {
        PyErr_WriteUnraisable(place);
    }
    Py_XDECREF(result);
}
