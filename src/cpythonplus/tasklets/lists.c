/* The queues of channels. */
#include "lists.h"

void
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

void
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

void
plus_channel_empty(struct plus_channel *channel)
{
    while (channel->head != NULL) {
        struct plus_tasklet *task = channel->head;

        plus_channel_remove(task);
        Py_DECREF(task);
    }
}
