/* Channels: who waits, and what happens when two meet.  All with the GIL held. */
#ifndef PLUS_TASKLETS_CHANNEL_H
#define PLUS_TASKLETS_CHANNEL_H

#include "../core/lists.h"

extern PyObject *plus_channel_hook; /* the channel callback, or NULL */

/* send() and receive() (direction 1 and -1).  Takes the value; gives what was received or None, or NULL with an
 * exception. */
PyObject *
plus_channel_action(struct plus_channel *channel, PyObject *value, int direction);

#endif
