/* Each thread has a bit for each rank that it holds; taking a lock aborts if a bit of its rank or a higher one is set.
 * So a wrong order is found at its first use by a single thread, and not only when two threads deadlock.
 *
 * The bits are the thread's own: a lock must be released by the thread that took it, and a lock that is waited for
 * without the GIL counts as taken from before the wait.  In the child of a fork the forking thread keeps its bits, so
 * its handlers also report locks as released that they make anew.
 */
#include "rank.h"

#ifndef NDEBUG

#include <stdio.h>
#include <stdlib.h>

static _Thread_local unsigned held; /* one bit for each rank */

void
plus_rank_taken(enum plus_rank rank)
{
    if (held >> rank != 0) {
        fprintf(stderr, "cpythonplus: a lock of rank %d is taken while 0x%x are held\n", (int)rank,
                held);
        abort();
    }
    held |= 1u << rank;
}

void
plus_rank_given(enum plus_rank rank)
{
    if ((held >> rank & 1u) == 0) {
        fprintf(stderr, "cpythonplus: a lock of rank %d is given back and was not held\n",
                (int)rank);
        abort();
    }
    held &= ~(1u << rank);
}

#else

typedef int plus_rank_is_empty_in_release_builds; /* ISO C requires a declaration in each file */

#endif
