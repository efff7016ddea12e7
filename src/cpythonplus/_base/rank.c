/* Each thread has a bit for each rank that it holds; taking one aborts if any bit of that rank or a higher one is set.
 * So a wrong order is found the first time that it is taken, by one thread alone, and not when two threads meet in it.
 *
 * The bits are the thread's own: a lock must be given back by the thread that took it, and one that is waited for
 * without the GIL has its rank from before the wait.  In the child of a fork the forking thread goes on with its bits,
 * so what its handlers make anew instead of unlocking, they give back here.
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

typedef int plus_rank_is_empty_in_release_builds; /* ISO C wants a declaration in each file */

#endif
