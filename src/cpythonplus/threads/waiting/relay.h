/* A relay wakes a crowd of waiters one after the other.
 *
 * If a thousand threads wake at once, they all queue for the GIL, and the next thread that comes queues behind them
 * all. So only a few are roused; each that arrives, with the GIL, rouses the next:
 *
 *     words   w w w w w w w w w w w w w w w w
 *             └ arrived ┘ └ on ┘ └ still asleep, wait ended already
 *                       the way
 *
 * All waits are ended at once, under the guard as usual: only the system call is delayed.  A waiter that wakes by
 * itself (time-out, signal) finds that out, and arrives like the others.  Its word is roused once more when its turn
 * comes; as everywhere in this room its address is enough for that.
 *
 * After plus_relay_start(), WIDTH + arrivals words have been roused, or all.  So more words are roused than have
 * arrived, and a waiter is always on the way.  The kernel decides when it arrives: WIDTH threads without a processor
 * (SCHED_IDLE on a full machine, stopped by a debugger) hold back the others.
 *
 * The last waiter to arrive frees the relay.  Nothing here knows of Python, blocks or locks.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* The most waiters on the way: while one has the GIL, the kernel wakes the others. */
#define PLUS_RELAY_WIDTH 2u

struct plus_relay;

/* Makes a relay for `size` sleepers at most; NULL: no memory, rouse them at once. */
struct plus_relay *
plus_relay_new(uint32_t size);

/* Announces one more waiter that will arrive; called before its wait is ended. */
void
plus_relay_expect(struct plus_relay *relay);

/* Adds the waiter's word, if it was asleep. */
void
plus_relay_add(struct plus_relay *relay, _Atomic uint32_t *word);

/* Called when all words are in: rouses the first.  The relay may be gone afterwards. */
void
plus_relay_start(struct plus_relay *relay);

/* Called by a waiter that was announced: rouses the next.  The relay may be gone afterwards. */
void
plus_relay_arrived(struct plus_relay *relay);
