/* A thread's scheduler: its beginning and its end.  All with the GIL held. */
#ifndef PLUS_TASKLETS_THREAD_H
#define PLUS_TASKLETS_THREAD_H

/* Connects the layers (struct plus_above); before any thread has a scheduler. */
void
plus_threads_prepare(void);

/* The interpreter's end, before anything is taken apart: kills the tasklets of this thread, gives up those that
 * do not end, and refuses to switch any once the interpreter finalises. */
void
plus_schedulers_end(void);

#endif
