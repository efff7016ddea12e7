/* A thread's scheduler: its beginning and its end.  Called with the GIL held. */
#pragma once

/* Connects the layers (struct plus_above); called before any thread has a scheduler. */
void
plus_threads_prepare(void);

/* Called when the interpreter begins to end: kills the tasklets of this thread, abandons those that do not end, and
 * refuses to switch once the interpreter finalises. */
void
plus_schedulers_end(void);
