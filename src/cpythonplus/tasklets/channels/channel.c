/* Channels: the waiting tasklets, and the meeting of a sender with a receiver.
 *
 * Semantics: Stackless Python 3.x, Stackless/module/channelobject.c.
 */
/* The functions that switch have no buffers, and the stack protector's check would be a tenth of a switch. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC optimize("no-stack-protector")
#endif

#include "channel.h"

#include "../../_base/process/clock.h"
#include "../core/bomb.h"
#include "../scheduling/parking.h"
#include "../scheduling/switching.h"
#include "../waiting/outside.h"

#define CLOSED "Send/receive operation on a closed channel"

PyObject *plus_channel_hook;

static void
swap_values(struct plus_tasklet *a, struct plus_tasklet *b)
{
    PyObject *value = a->tempval;

    a->tempval = b->tempval;
    b->tempval = value;
}

/* A tasklet waits at the other side. */
static int
meet(struct plus_scheduler *sched, struct plus_channel *channel, int direction, PyObject **result)
{
    struct plus_tasklet *source = sched->running, *target = channel->head;
    struct plus_tasklet *next = source;
    bool elsewhere = target->sched != sched;

    Py_INCREF(target);
    plus_channel_remove(target);
    swap_values(source, target);
    if (elsewhere) {
        plus_queue_insert(target);
        plus_scheduler_wake(target->sched);
    }
    else if (channel->schedule_all) {
        plus_queue_insert(target);
        next = source->next;
    }
    else if (channel->preference == -direction) {
        plus_queue_insert_next(target);
        next = target;
        sched->watch.stay = true;
    }
    else {
        plus_queue_insert(target);
        sched->watch.stay = true;
    }
    int failed = plus_schedule(sched, source, next, result);

    if (failed) { /* undo; code that ran may have removed the target, or tasklets behind it */
        if (plus_is_runnable(target)) {
            plus_queue_remove(target);
            Py_DECREF(target);
        }
        sched->current = source;
        swap_values(source, target);
        plus_channel_insert(channel, target, -direction, channel->head);
        return -1;
    }
    Py_DECREF(target);
    return 0;
}

static int
wait_for_partner(struct plus_scheduler *sched, struct plus_channel *channel, int direction,
                 PyObject **result)
{
    struct plus_tasklet *source = sched->running;

    if (source->block_trap) {
        PyErr_SetString(PyExc_RuntimeError, "this tasklet does not like to be blocked.");
        return -1;
    }
    if (channel->closing) {
        PyErr_SetString(PyExc_ValueError, CLOSED);
        return -1;
    }
    source->parked_ns = plus_now_coarse_ns();
    plus_queue_remove(source);
    plus_channel_insert(channel, source, direction, NULL);
    if (plus_schedule(sched, source, sched->current, result) == 0) {
        return 0;
    }
    if (source->blocked) {
        plus_channel_remove(source);
        plus_queue_unremove(source);
        return -1;
    }
    /* Another thread has sent to or received from this tasklet meanwhile: that value must not be lost, so the exception
     * is raised when the tasklet next switches or waits. */
    PyObject *exception = plus_compat_take_exception();

    if (source->due == NULL) {
        source->due = exception;
    }
    else {
        Py_DECREF(exception);
    }
    return plus_schedule(sched, source, source, result);
}

struct offer {
    struct plus_scheduler *sched;
    struct plus_channel *channel;
    int direction;
};

static bool
finds_partner(const struct offer *offer)
{
    return offer->direction * offer->channel->balance < 0;
}

static bool
waits_no_more(void *argument)
{
    const struct offer *offer = argument;

    return finds_partner(offer) || offer->channel->closing || !plus_outside_may_help(offer->sched);
}

/* Sends or receives for a signal handler, while its whole thread waits.  No tasklet is current, so none can be switched
 * from, or queue in the channel: the handler itself exchanges values with a tasklet that waits there. */
static PyObject *
act_in_handler(struct plus_scheduler *sched, struct plus_channel *channel, PyObject *value,
               int direction)
{
    struct offer offer = {sched, channel, direction};

    if (plus_wait_beside(waits_no_more, &offer, PLUS_NO_DEADLINE) < 0) {
        Py_DECREF(value);
        return NULL;
    }
    if (!finds_partner(&offer)) {
        if (channel->closing) {
            PyErr_SetString(PyExc_ValueError, CLOSED);
        }
        else {
            (void)plus_refuse_in_callback(sched);
        }
        Py_DECREF(value);
        return NULL;
    }
    struct plus_tasklet *target = channel->head;
    PyObject *result = target->tempval;

    target->tempval = value;
    plus_channel_remove(target);
    plus_queue_insert(target);
    plus_scheduler_wake(target->sched);
    return plus_value_or_raise(result);
}

PyObject *
plus_channel_action(struct plus_channel *channel, PyObject *value, int direction)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    PyObject *result = NULL;

    if (sched == NULL) {
        Py_DECREF(value);
        return NULL;
    }
    if (sched->in_handler) {
        return act_in_handler(sched, channel, value, direction);
    }
    if (sched->in_callback) {
        Py_DECREF(value);
        PyErr_SetString(PyExc_RuntimeError, plus_channel_hook != NULL
                                                ? "Recursive channel call due to callbacks!"
                                                : "Recursive scheduler call due to callbacks!");
        return NULL;
    }
    struct plus_tasklet *source = sched->running;

    if (plus_refuse_leaving(sched) || plus_raise_due(source)) {
        Py_DECREF(value);
        return NULL;
    }
    PyObject *old = source->tempval;
    bool can = direction * channel->balance < 0;

    source->tempval = value;
    if (plus_channel_hook != NULL) {
        PyObject *hook = Py_NewRef(plus_channel_hook);

        sched->in_callback = true;
        plus_drop_result(PyObject_CallFunction(hook, "OOii", channel, source, direction > 0, !can),
                         hook);
        sched->in_callback = false;
        Py_DECREF(hook);
        can = direction * channel->balance < 0; /* the GIL may have been given up */
    }
    Py_INCREF(channel); /* a waiting tasklet may have the last reference, and drop it in a switch */
    int failed = can ? meet(sched, channel, direction, &result)
                     : wait_for_partner(sched, channel, direction, &result);

    Py_DECREF(channel);
    if (failed) {
        plus_set_value(source, old);
        return NULL;
    }
    Py_DECREF(old);
    return result;
}
