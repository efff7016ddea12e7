/* Channels: the waiting tasklets, and the meeting of a sender with a receiver.  Called with the GIL held. */
#pragma once

#include "../core/lists.h"

extern PyObject *plus_channel_hook; /* the channel callback, or NULL */

/* send() and receive() (direction 1 and -1).  Takes the value; gives the received value or None, or NULL with an
 * exception. */
PyObject *
plus_channel_action(struct plus_channel *channel, PyObject *value, int direction);
