/* Waiting until somebody ends it, a time has come, or an exception arrives: what locks, sleeping and descriptors
 * have in common.
 *
 * A wait queue is a struct plus_channel: who is in it is *blocked* as a receiver is, and kill(), throw(), dumps,
 * the garbage collector and the end of the thread find it there.  plus_channel_remove(), which all of those
 * call, drops the timer too: nothing stale is left of a wait however it ends.
 *
 * All with the GIL held.  It is given up only where the whole thread has nothing to run.  fork: the child has
 * the forking thread's tasklets as they were; those of other threads are taken out of their queues.
 */
#ifndef PLUS_TASKLETS_PARKING_H
#define PLUS_TASKLETS_PARKING_H

#include "../core/task.h"

enum plus_parked { PLUS_PARKED_WOKEN, PLUS_PARKED_TIMED_OUT, PLUS_PARKED_RAISED };

/* Has the running tasklet, of whatever thread, wait at the end of `queue` (`again`, woken in vain: at its head) until
 * plus_unpark(), the dead line (of plus_now_ns(); PLUS_NO_DEADLINE: none) or an exception, which is set then.
 * `*woken` (or NULL): whether it was unparked, perhaps before an exception came; what it was given is to be passed on
 * then.  Not a deadlock, ever: a signal's handler may end it. */
enum plus_parked
plus_park(struct plus_scheduler *sched, struct plus_channel *queue, uint64_t deadline_ns,
          bool again, bool *woken);

/* A signal's handler runs while all of its thread waits, or a callback: nothing can be switched here, but what
 * others do can be waited for.  1: `is_over` says so; 0: the dead line has passed; -1: another handler has raised. */
int
plus_wait_beside(bool (*is_over)(void *), void *arg, uint64_t deadline_ns);

/* Ends the wait of a parked tasklet of any thread. */
void
plus_unpark(struct plus_tasklet *task);

/* Has a tasklet that has not begun and is in no queue begin at that time.  Takes a reference.  0, or -1 with
 * MemoryError; then nothing is taken. */
int
plus_begin_at(struct plus_tasklet *task, uint64_t deadline_ns);

/* Ends the waits whose time has come. */
void
plus_timers_fire(struct plus_scheduler *sched, uint64_t now_ns);

/* Blocks the running tasklet; a dead line that has passed lets the others run once.  0, or -1 with an exception. */
int
plus_sleep_until(struct plus_scheduler *sched, uint64_t deadline_ns);

/* A dead line from a time-out in seconds; at least now.  False with ValueError (NaN) or OverflowError; negative
 * ones: as 0. */
bool
plus_deadline_after(double seconds, uint64_t *deadline_ns);

/* The same from None (no dead line) or a number. */
bool
plus_deadline_from(PyObject *timeout, uint64_t *deadline_ns);

/* A wait queue that no Python code sees.  `waits`: what a dump says of who is in it; static.  NULL with an
 * exception. */
struct plus_channel *
plus_waiters_make(const char *waits);

/* The functions of io/running.py: which loop of asyncio's runs in this thread, have it look as if none did, and put
 * back what that returned.  Who waits in plus_park() calls them. */
void
plus_running_loops(PyObject *get, PyObject *set_aside, PyObject *put_back);

extern PyTypeObject plus_waiters_type; /* of the wait queues */

#endif
