/* The queue of a tasklet: its scheduler's run queue, or a channel's.  A queue owns a reference to each tasklet in it.
 *
 * Called with the GIL held.
 */
#pragma once

#include "task.h"

/* ---- the run queue: circular, `current` first; insert takes a reference, remove gives it ---- */

static inline void
plus_queue_link(struct plus_tasklet *task, struct plus_tasklet *before)
{
    task->next = before;
    task->prev = before->prev;
    before->prev->next = task;
    before->prev = task;
}

/* Inserts at the end: before current. */
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

/* Inserts right after current, which must exist. */
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

/* Puts a removed current back to its place. */
static inline void
plus_queue_unremove(struct plus_tasklet *task)
{
    plus_queue_insert(task);
    task->sched->current = task;
}

/* Puts a removed current back, with the queue's reference, if threads or a signal handler may have run since: one of
 * them may have put it back already. */
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

/* ---- a channel's queue, which ends with NULL ---- */

/* Takes a reference; inserts at the end if `before` is NULL. */
static inline void
plus_channel_insert(struct plus_channel *channel, struct plus_tasklet *task, int direction,
                    struct plus_tasklet *before)
{
    struct plus_tasklet *after = before != NULL ? before->prev : channel->tail;

    task->next = before;
    task->prev = after;
    *(before != NULL ? &before->prev : &channel->tail) = task;
    *(after != NULL ? &after->next : &channel->head) = task;
    channel->balance += direction;
    task->blocked = (signed char)direction;
    task->channel = channel;
}

/* Gives the queue's reference.  Also removes the timer of a parked tasklet. */
static inline void
plus_channel_remove(struct plus_tasklet *task)
{
    struct plus_channel *channel = task->channel;

    *(task->next != NULL ? &task->next->prev : &channel->tail) = task->prev;
    *(task->prev != NULL ? &task->prev->next : &channel->head) = task->next;
    channel->balance -= task->blocked;
    task->next = task->prev = NULL;
    task->blocked = 0;
    task->channel = NULL;
    if (channel->waits != NULL) {
        task->sched->parking.count--;
        if (task->timer.place != 0) {
            plus_timers_remove(&task->sched->parking.timers, &task->timer);
        }
    }
}

/* Removes all tasklets and drops the references to them. */
static inline void
plus_channel_empty(struct plus_channel *channel)
{
    while (channel->head != NULL) {
        struct plus_tasklet *task = channel->head;

        plus_channel_remove(task);
        Py_DECREF(task);
    }
}
