/* run() and run_for(): run the others until nothing is runnable, or until the time is over.
 *
 * The caller of run() leaves the run queue and is kept in `runs`, innermost last.  It continues
 *
 *   - when nothing is runnable any more: switching.c revives the innermost caller;
 *   - when a tasklet raises: the bomb goes to the innermost caller, or to main;
 *   - when its time is over: the watchdog switches to the *owner* of the thread's watch, which is the outermost caller
 *     with a time-out.
 *
 * If an outer caller continues first, neither it nor the later callers of run() have anything to wait for: they are
 * popped, and made runnable if they are in no queue.  A watch whose owner is popped ends.  run(threadblock=True) is not
 * revived while other threads may make a tasklet runnable: it waits in outside.c.
 *
 * Semantics: Stackless Python 3.x, Stackless/module/scheduling.c and stacklessmodule.c.  Called with the GIL held.
 */
#include "binding.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_base/process/clock.h"
#include "../core/lists.h"
#include "../scheduling/switching.h"

static int
push_caller(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    struct plus_tasklet **callers = plus_room_for_one(
        sched->runs.callers, (size_t)sched->runs.count, &sched->runs.room, 4, sizeof(*callers));

    if (callers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    sched->runs.callers = callers;
    callers[sched->runs.count++] = (struct plus_tasklet *)Py_NewRef(task);
    return 0;
}

/* `task` continues: pops it and the later callers of run(), which have nothing to wait for any more. */
static void
pop_callers(struct plus_scheduler *sched, struct plus_tasklet *task)
{
    while (plus_called_run(sched, task)) {
        struct plus_tasklet *popped = sched->runs.callers[--sched->runs.count];

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

/* Returns 0, or -1 with an exception. */
static int
run_others(struct plus_scheduler *sched, bool threadblock)
{
    struct plus_tasklet *caller = sched->running;
    bool outer = sched->runs.threadblock;
    PyObject *result;

    if (plus_refuse_in_callback(sched)) {
        return -1;
    }
    if (push_caller(sched, caller) < 0) {
        return -1;
    }
    sched->runs.threadblock = threadblock;
    plus_queue_remove(caller);
    Py_DECREF(caller); /* the queue's reference; `runs` has another one */
    if (sched->current == NULL && !threadblock && !plus_outside(sched)) {
        plus_queue_unremove((struct plus_tasklet *)Py_NewRef(caller));
        result = Py_NewRef(Py_None);
    }
    else if (plus_schedule(sched, caller, sched->current, &result) < 0) {
        sched->runs.threadblock = outer;
        sched->runs.count--;
        plus_queue_take_back(caller);
        return -1;
    }
    sched->runs.threadblock = outer;
    pop_callers(sched, caller);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

PyObject *
plus_run(struct plus_scheduler *sched, const struct plus_watch_options *options)
{
    struct plus_watch *watch = &sched->watch;
    struct plus_tasklet *victim = NULL;
    bool wanted = options->timeout > 0 || options->seconds >= 0;
    unsigned serial = 0;

    if (plus_refuse_in_callback(sched)) {
        return NULL;
    }
    if (wanted && watch->owner == NULL && (sched->runcount > 1 || options->threadblock)) {
        if (plus_watchdog_begin(sched, options) < 0) {
            return NULL;
        }
        serial = watch->owner == sched->running ? watch->serial : 0;
    }
    bool failed = run_others(sched, options->threadblock) < 0;

    if (serial != 0 && watch->owner != NULL && watch->serial == serial) {
        victim = watch->victim;
        watch->victim = NULL;
        plus_watchdog_end(sched);
    }
    if (failed) { /* an exception was sent to the owner: the victim stays runnable */
        Py_XDECREF(victim);
        return NULL;
    }
    if (victim == NULL) {
        Py_RETURN_NONE;
    }
    if (plus_is_runnable(victim) && victim != sched->running) {
        victim->parked_ns = plus_now_coarse_ns();
        plus_queue_remove(victim);
        Py_DECREF(victim);
    }
    return (PyObject *)victim;
}
