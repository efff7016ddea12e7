/* Barriers after a fork. */
#pragma once

/* Called in the child of a fork by the thread that goes on waiting there: it still counts as waiting. */
void
plus_barrier_atfork_child(void);
