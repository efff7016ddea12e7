/* Keeps greenlets out of tasklets that have a C stack of their own.
 *
 * greenlet takes it that a thread has one C stack: a switch from another one copies what lies between the two, or
 * writes over what is parked.  gevent switches in each of its calls that wait.
 */
#ifndef PLUS_TASKLETS_FENCE_H
#define PLUS_TASKLETS_FENCE_H

/* From now on greenlet's switch() and throw() raise RuntimeError in all tasklets but the main ones, and greenlets
 * that are forgotten there are not ended but stay.  To be called as soon as greenlet is loaded, and not before: it
 * would be imported.  Nothing happens with one that is not known.  With the GIL held; a second call does nothing. */
void
plus_fence_greenlets(void);

#endif
