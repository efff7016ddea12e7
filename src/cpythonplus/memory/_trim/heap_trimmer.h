/* A thread that has glibc give back what is free inside its heap, now and then.
 *
 * glibc gives back the end of its heap only, by itself: one block there, be it one in a thread's cache, keeps all
 * that lies before it.  malloc_trim() gives back the free pages in between, wherever they are. */
#ifndef PLUS_MEMORY_HEAP_TRIMMER_H
#define PLUS_MEMORY_HEAP_TRIMMER_H

#include <stddef.h>

/* Starts it, once for a process; a second call changes the numbers.
 *
 * interval_ms: how often it looks; a process that has slept is left alone.  Looking takes long where a heap is in
 *     many pieces: it then waits 50 times as long as it took.
 * worth_bytes: how much must be free in the heap, and one of the two above what the last trim left: what is free,
 *     or resident memory.
 *
 * With the GIL held.  The thread holds no GIL and takes no signals.  0 or -errno; -ENOTSUP where malloc is
 * not glibc's.  A forked child has no such thread, until one of these two is called (it may, at once). */
int
plus_heap_trimmer_start(unsigned interval_ms, size_t worth_bytes);

/* Once more with the same numbers, if it was ever started.  0 or -errno. */
int
plus_heap_trimmer_resume(void);

/* Ends it, before a fork.  It may be looking: called without the GIL. */
void
plus_heap_trimmer_pause(void);

/* How often the thread has trimmed.  Any thread. */
unsigned
plus_heap_trimmer_count(void);

#endif
