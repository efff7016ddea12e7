/* Ranks of locks, asserted in debug builds.
 *
 * A thread may take a lock only while all that it holds have a lower rank; so no two threads can wait
 * for each other in a circle.  Each lock of the extension says its rank here.  Release builds
 * compile this to nothing.
 *
 * The interpreter's own locks have no rank of ours.  The GIL's mutex, in which the scheduler's functions are
 * called, is taken inside of the first of these and outside of the second.
 */
#ifndef PLUS_BASE_RANK_H
#define PLUS_BASE_RANK_H

enum plus_rank {
    PLUS_RANK_CONTROL = 1, /* installing and uninstalling the scheduler; held longest */
    PLUS_RANK_REGISTRY,    /* the list of thread records; leaves to nothing */
    PLUS_RANK_GUARD,       /* one wait queue of the threads room; never two at a time */
};

#ifndef NDEBUG

/* Abort with a message when the order is broken.  Any thread, with or without the GIL; the child of
 * a fork goes on with what the forking thread held. */
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
#endif
