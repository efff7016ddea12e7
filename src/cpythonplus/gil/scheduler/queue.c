#include "queue.h"

#include <stddef.h>

void
plus_queue_insert(struct plus_queue *queue, struct plus_thread *thread)
{
    struct plus_thread *next = NULL;

    if (queue->head != NULL && thread->ticket < queue->head->ticket) {
        next = queue->head;
    }
    else {
        struct plus_thread *at = queue->tail;
        while (at != NULL && at->ticket > thread->ticket) {
            next = at;
            at = at->prev;
        }
    }
    /* Link `thread` in front of `next`, or at the tail if `next` is NULL. */
    struct plus_thread *prev = next != NULL ? next->prev : queue->tail;

    thread->next = next;
    thread->prev = prev;
    *(prev != NULL ? &prev->next : &queue->head) = thread;
    *(next != NULL ? &next->prev : &queue->tail) = thread;
}

void
plus_queue_remove(struct plus_queue *queue, struct plus_thread *thread)
{
    *(thread->prev != NULL ? &thread->prev->next : &queue->head) = thread->next;
    *(thread->next != NULL ? &thread->next->prev : &queue->tail) = thread->prev;
    thread->next = NULL;
    thread->prev = NULL;
}
