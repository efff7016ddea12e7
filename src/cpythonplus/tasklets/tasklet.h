/* What the files of this room share: tasklets, channels and the scheduler that each thread has.
 *
 * Everything here is called with the GIL held.  The words are Stackless Python's: a tasklet is
 * *current*, *runnable* (in the circular queue of its scheduler), *blocked* (in a channel's queue) or
 * *floating* (in none).
 */
#ifndef PLUS_TASKLETS_TASKLET_H
#define PLUS_TASKLETS_TASKLET_H

#include "../_base/compat.h"
#include "../threads/waitq.h"
#include "fiber.h"
#include "timers.h"
#include "watchdog.h"

#include <stdint.h>
#include <string.h>

struct plus_scheduler;
struct plus_channel;
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
    uint64_t parked_ns; /* coarse monotonic time at which it left the run queue; 0: never */
    struct plus_timer timer;
    unsigned char parked; /* see parking.c */
    signed char blocked;  /* 1: sending, -1: receiving or parked */
    bool alive;           /* bound with arguments and not finished, or main */
    bool started;         /* has Python frames or a C stack */
    bool is_main;
    bool abandoned;   /* never runs again, see plus_tasklet_abandon() */
    bool awaits;      /* counted in its scheduler's io_waiting */
    bool uncalled;    /* parked from inside of a finaliser; see frames.h */
    bool own_context; /* given before its arguments were */
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

/* One for each thread that has used tasklets; lives as long as its thread state. */
struct plus_scheduler {
    PyThreadState *tstate;
    struct plus_tasklet *main;
    struct plus_tasklet
        *current; /* first of the run queue, whose references it owns; NULL: empty */
    struct plus_tasklet *running;    /* the same, but for moments in which it has left the queue */
    struct plus_tasklet *coming;     /* who runs after the callback that is called now, or NULL */
    int runcount;                    /* length of the run queue, with current */
    struct plus_tasklet *finished;   /* ended just now; its stack is given back after the switch */
    PyObject *after_switch;          /* let go after the switch */
    struct plus_tasklet **watchdogs; /* callers of run(), innermost last; strong */
    int watchdog_count, watchdog_room;
    void *signal_stack; /* ours, for SIGSEGV; or NULL */
    int switch_trap;
    bool stacks_fit;     /* their size, to the address space */
    bool holds_gil;      /* for a tasklet with the flag `atomic` */
    bool in_section;     /* and that could be done */
    bool in_callback;    /* inside a channel or schedule callback, or a handler, see below */
    bool in_handler;     /* of a signal that came while all of the thread waited */
    bool thread_blocked; /* waits for another thread to make a tasklet runnable */
    bool threadblock;    /* run(threadblock=True) is going on */
    bool watching;       /* a run() with a time-out is going on */
    uint32_t parked;     /* how many of its tasklets wait in plus_park() */
    struct plus_timers timers;
    struct plus_channel *sleepers; /* or NULL */
    struct plus_channel *askers;   /* who waits for a coroutine; or NULL */
    struct plus_poller *poller;    /* or NULL */
    struct plus_tasklet
        *hub; /* that gives the others their turns in an event loop now, borrowed; or NULL */
    struct plus_tasklet
        *own_hub;    /* of cpythonplus.tasklets.io._hub, borrowed while it lives; or NULL */
    PyObject *loops; /* what that file keeps for the thread, or NULL */
    bool hub_rests;  /* out of the run queue: nobody waits for a descriptor */
    bool hub_sleeps; /* the loop waits for its descriptors */
    bool hub_owed;   /* the loop was roused, and has not had its turn since */
    bool hub_due;    /* the loop is to get its turn before the other tasklets have all had theirs */
    bool poller_sleeps;  /* the thread does, without a loop */
    uint32_t io_waiting; /* how many wait for descriptors */
    uint32_t hub_asked;  /* how many wait for asyncio */
    uint32_t look_in;    /* switches until it is time to look at timers and descriptors */
    uint64_t looked_ns;
    uint64_t hub_turn_ns;  /* when the hub began to let the others run */
    uint64_t instrumented; /* see instrument.h */
    struct plus_watch watch;
    struct plus_stack_pool stacks;
    struct plus_waitq idle; /* its thread, while thread_blocked; see idle.h */
    size_t trim_at;        /* stacks in use at which it is worthwhile to look for cold ones again */
    Py_ssize_t references; /* of its thread and of its tasklets */
    struct plus_scheduler *next_scheduler; /* chain of all, for threads and dumps */
};

extern PyTypeObject plus_tasklet_type, plus_channel_type, plus_bomb_type, plus_delivery_type;
extern struct plus_scheduler *plus_schedulers; /* all, newest first */

/* An entry of a table of methods, whose text begins as inspect.signature() reads it; KW: with whatever flags. */
#define PLUS_METHOD(name, function, flags, parameters, text)                                       \
    {name, function, flags, PyDoc_STR(name "(" parameters ")\n--\n\n" text)}
#define PLUS_METHOD_KW(name, function, ...)                                                        \
    PLUS_METHOD(name, (PyCFunction)(void (*)(void))(function), __VA_ARGS__)

/* In a table that ends with an entry without a name (or is NULL): the method of that name and with those flags, or NULL. */
static inline PyMethodDef *
plus_find_method(PyMethodDef *method, const char *name, int flags)
{
    while (method != NULL && method->ml_name != NULL && strcmp(method->ml_name, name) != 0) {
        method++;
    }
    return method != NULL && method->ml_name != NULL && method->ml_flags == flags ? method : NULL;
}

#define plus_is_bomb(op) Py_IS_TYPE(op, &plus_bomb_type)

#endif
