#include "queue.h"

#include <stddef.h>

/* Links `thread` in front of `next`; NULL: at the tail. */
static void
link_before(struct plus_queue *queue, struct plus_thread *thread, struct plus_thread *next)
{
    struct plus_thread *prev = next != NULL ? next->prev : queue->tail;

    thread->next = next;
    thread->prev = prev;
    if (prev != NULL) {
        prev->next = thread;
    }
    else {
        queue->head = thread;
    }
    if (next != NULL) {
        next->prev = thread;
    }
    else {
        queue->tail = thread;
    }
}

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
    link_before(queue, thread, next);
}

void
plus_queue_remove(struct plus_queue *queue, struct plus_thread *thread)
{
    if (thread->prev != NULL) {
        thread->prev->next = thread->next;
    }
    else {
        queue->head = thread->next;
    }
    if (thread->next != NULL) {
        thread->next->prev = thread->prev;
    }
    else {
        queue->tail = thread->prev;
    }
    thread->next = NULL;
    thread->prev = NULL;
}
