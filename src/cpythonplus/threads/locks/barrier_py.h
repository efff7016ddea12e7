/* Barriers after a fork. */
#ifndef PLUS_THREADS_BARRIER_PY_H
#define PLUS_THREADS_BARRIER_PY_H

/* Called in the child of a fork by the thread that goes on waiting there: it still counts as waiting. */
void
plus_barrier_atfork_child(void);

#endif
