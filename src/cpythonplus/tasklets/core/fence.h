/* Keeps greenlets on the C stacks that they began on.
 *
 * greenlet assumes that a thread has one C stack.  A switch from another one copies the memory between the two, or
 * overwrites parked stacks.  gevent switches to its hub in each of its calls that wait.  SQLAlchemy's asyncio support
 * switches in the tasklet that runs the loop.
 */
#pragma once

/* From now on greenlet's switch() and throw() raise RuntimeError if the greenlet, the current one or a parent has
 * begun in another tasklet; a greenlet whose last reference is dropped there is kept instead of ended.  Call it as
 * soon as greenlet is loaded, not before: it would be imported.  Does nothing with an unknown version.  Called with
 * the GIL held; a second call does nothing. */
void
plus_fence_greenlets(void);
