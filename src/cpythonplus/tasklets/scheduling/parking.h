/* Waiting until another tasklet or thread ends the wait, a time has come, or an exception arrives: the common part of
 * locks, sleeping and descriptors.
 *
 * A wait queue is a struct plus_channel.  A tasklet in it is *blocked* like a receiver, so kill(), throw(), dumps, the
 * garbage collector and the end of the thread find it there.  All of these call plus_channel_remove(), which drops the
 * timer too: nothing stale is left of a wait, however it ends.
 *
 * All functions are called with the GIL held.  It is given up only if the whole thread has nothing to run.  fork: the
 * child has the forking thread's tasklets as they were; those of other threads are taken out of their queues.
 */
#pragma once

#include "../core/task.h"

enum plus_parked { PLUS_PARKED_WOKEN, PLUS_PARKED_TIMED_OUT, PLUS_PARKED_RAISED };

/* Makes the running tasklet, of any thread, wait at the end of `queue` (at its head if `again`: it was woken in vain)
 * until plus_unpark(), the deadline (of plus_now_ns(); PLUS_NO_DEADLINE: none) or an exception, which is then set.
 * `*woken` (or NULL) tells whether it was unparked, perhaps before an exception came; then the caller must pass on what
 * it was given.  Such a wait is never a deadlock: a signal handler may end it. */
enum plus_parked
plus_park(struct plus_scheduler *sched, struct plus_channel *queue, uint64_t deadline_ns,
          bool again, bool *woken);

/* Waits without switching, for a signal handler that runs while its whole thread waits, or for a callback; other
 * threads run meanwhile.  1: `is_over` returned true; 0: the deadline has passed; -1: another handler raised. */
int
plus_wait_beside(bool (*is_over)(void *), void *arg, uint64_t deadline_ns);

/* Ends the wait of a parked tasklet of any thread. */
void
plus_unpark(struct plus_tasklet *task);

/* Makes a tasklet that has not begun and is in no queue begin at the deadline.  Takes a reference.  Returns 0, or -1
 * with MemoryError; then no reference is taken. */
int
plus_begin_at(struct plus_tasklet *task, uint64_t deadline_ns);

/* Ends the waits whose time has come. */
void
plus_timers_fire(struct plus_scheduler *sched, uint64_t now_ns);

/* Blocks the running tasklet; if the deadline has passed, lets the others run once.  Returns 0, or -1 with an
 * exception. */
int
plus_sleep_until(struct plus_scheduler *sched, uint64_t deadline_ns);

/* Converts a time-out in seconds to a deadline; a negative one counts as 0.  Returns false with ValueError (NaN) or
 * OverflowError. */
bool
plus_deadline_after(double seconds, uint64_t *deadline_ns);

/* Like plus_deadline_after(), from None (no deadline) or a number. */
bool
plus_deadline_from(PyObject *timeout, uint64_t *deadline_ns);

/* Makes a wait queue that no Python code sees.  `waits`: a dump's words for a tasklet in it; static.  Returns NULL with
 * an exception. */
struct plus_channel *
plus_waiters_make(const char *waits);

/* Sets the five functions of asyncio and sys by which the running loop is set aside, see io/_running.py. */
void
plus_running_loops(PyObject *const *functions);

/* Returns the running loop (or None) and the hooks of asynchronous generators as a new tuple, or NULL with an exception.
 * Both functions need plus_running_loops(). */
PyObject *
plus_running_loop(void);

/* Sets what such a tuple has.  Signal handlers run in an audit hook at most; what they raise goes to
 * sys.unraisablehook, and the rest is set nevertheless. */
void
plus_set_running_loop(PyObject *state);

extern PyTypeObject plus_waiters_type;  /* of the wait queues */
extern PyTypeObject plus_delivery_type; /* delivery.c: for the end of a call in another thread */
