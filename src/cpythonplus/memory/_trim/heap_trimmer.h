/* A thread that makes glibc give back the free memory inside its heap at intervals.
 *
 * By itself glibc gives back only the end of its heap.  A single block there, even one in a thread's cache, keeps all
 * memory before it. malloc_trim() gives back free pages anywhere in the heap. */
#pragma once

#include <stddef.h>

/* Starts the thread, once in a process; a second call changes the numbers.
 *
 * interval_ms: how often it looks; it leaves a process alone that has slept.  If a heap is in many pieces, looking
 * takes long: the thread then waits 50 times as long as it took. worth_bytes: so much must be free in the heap, and
 * free or resident memory must be so much above the level after the last trim.
 *
 * With the GIL held.  The thread holds no GIL and takes no signals.  0 or -errno; -ENOTSUP if malloc is not glibc's.
 * A forked child has no such thread until it calls one of the two functions (it may, at once). */
int
plus_heap_trimmer_start(unsigned interval_ms, size_t worth_bytes);

/* Starts the thread again with the same numbers, if it was ever started.  0 or -errno. */
int
plus_heap_trimmer_resume(void);

/* Ends the thread, before a fork.  The thread may be looking: call it without the GIL. */
void
plus_heap_trimmer_pause(void);

/* Returns the number of trims.  Any thread. */
unsigned
plus_heap_trimmer_count(void);
