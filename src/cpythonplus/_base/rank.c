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
