/* A crowd that is woken, one after the other.
 *
 * A thousand threads that wake at once stand in the GIL's queue all at once, and whoever comes next
 * stands behind them all.  So only a few are roused; each that arrives, with the GIL, rouses the next:
 *
 *     words   w w w w w w w w w w w w w w w w
 *             └ arrived ┘ └ on ┘ └ asleep still, ended already
 *                          the way
 *
 * Their waits are ended under the guard as ever, all at once: only the system call is put off.  A waiter
 * that wakes by itself (time-out, signal) finds that out, and arrives like the others.  Its word is roused
 * once more when its turn comes; as everywhere in this room its address is enough for that.
 *
 * Once the filling is over, WIDTH + arrivals words have been roused, or all.  So there are always more of
 * them than have arrived, and somebody is on the way.  When it comes is up to the kernel: WIDTH threads
 * that it gives no processor (SCHED_IDLE on a full machine, stopped by a debugger) hold back the others.
 *
 * Freed by the last of those that arrive.  Nothing here knows of Python, blocks or locks.
 */
#ifndef PLUS_THREADS_RELAY_H
#define PLUS_THREADS_RELAY_H

#include <stdatomic.h>
#include <stdint.h>

/* So many are on the way at most: while one has the GIL, the others are woken by the kernel. */
#define PLUS_RELAY_WIDTH 2u

struct plus_relay;

/* For `size` sleepers at most; NULL: no memory, they are to be roused at once. */
struct plus_relay *
plus_relay_new(uint32_t size);

/* Somebody more will arrive: before its wait is ended. */
void
plus_relay_expect(struct plus_relay *relay);

/* Its word, if it was asleep. */
void
plus_relay_add(struct plus_relay *relay, _Atomic uint32_t *word);

/* All are in: rouses the first.  The relay may be gone afterwards. */
void
plus_relay_start(struct plus_relay *relay);

/* One that was expected is here: rouses the next.  The relay may be gone afterwards. */
void
plus_relay_arrived(struct plus_relay *relay);

#endif
