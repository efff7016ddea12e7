/* Keeps greenlets on the C stacks that they began on.
 *
 * greenlet takes it that a thread has one C stack: a switch from another one copies what lies between the two, or
 * writes over what is parked.  gevent switches in each of its calls that wait, to its hub.  SQLAlchemy's asyncio switches in
 * the tasklet that runs the loop.
 */
#ifndef PLUS_TASKLETS_FENCE_H
#define PLUS_TASKLETS_FENCE_H

/* From now on greenlet's switch() and throw() raise RuntimeError where the greenlet, the current one or a parent has
 * begun in another tasklet, and greenlets that are forgotten there are not ended but stay.  To be called as soon as greenlet is loaded, and not before: it
 * would be imported.  Nothing happens with one that is not known.  With the GIL held; a second call does nothing. */
void
plus_fence_greenlets(void);

#endif
