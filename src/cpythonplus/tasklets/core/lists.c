/* The queues of channels. */
#include "lists.h"

void
plus_channel_empty(struct plus_channel *channel)
{
    while (channel->head != NULL) {
        struct plus_tasklet *task = channel->head;

        plus_channel_remove(task);
        Py_DECREF(task);
    }
}
