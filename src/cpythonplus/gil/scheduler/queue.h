/* The waiters of one level, in the order of their tickets (first come, first served).
 *
 *      head                                             tail
 *      ticket 3  <->  ticket 7  <->  ticket 8  <->  ticket 12
 *
 * A thread that was granted the GIL and found it taken, or that was interrupted in its turn, queues again
 * with its old ticket, at its old place.  All functions are called under the GIL's mutex; a record is in at
 * most one queue.  Nothing here blocks, allocates or knows of Python.
 */
#pragma once

#include "thread.h"

struct plus_queue {
    struct plus_thread *head, *tail;
};

/* thread->ticket must be set.  Takes constant time at either end, where nearly all insertions are. */
void
plus_queue_insert(struct plus_queue *queue, struct plus_thread *thread);

void
plus_queue_remove(struct plus_queue *queue, struct plus_thread *thread);
