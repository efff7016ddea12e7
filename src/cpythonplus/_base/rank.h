/* Ranks of locks, asserted in debug builds.
 *
 * A thread may take a lock only while all locks that it holds have a lower rank; so threads cannot wait for each other
 * in a circle.  Each lock of the extension has its rank here.  Release builds compile this to nothing.
 *
 * The interpreter's own locks have no rank.  The GIL's mutex, under which the scheduler's functions are called, is
 * taken inside of PLUS_RANK_CONTROL and outside of PLUS_RANK_REGISTRY.
 */
#pragma once

enum plus_rank {
    PLUS_RANK_CONTROL = 1, /* installing and uninstalling the scheduler; held longest */
    PLUS_RANK_REGISTRY,    /* the list of thread records; no lock is taken inside */
    PLUS_RANK_GUARD,       /* one wait queue of the threads folder; never two at a time */
};

#ifndef NDEBUG

/* Abort with a message if the order is broken.  Any thread, with or without the GIL; the child of a fork keeps the
 * forking thread's ranks. */
void
plus_rank_taken(enum plus_rank rank);
void
plus_rank_given(enum plus_rank rank);

#else

static inline void
plus_rank_taken(enum plus_rank rank)
{
    (void)rank;
}

static inline void
plus_rank_given(enum plus_rank rank)
{
    (void)rank;
}

#endif
