/* The search for the owners of the heap, or of its growth. */
#pragma once

#include "owner_mark.h"
#include "together.h"

#define PLUS_OWNERS 40
#define PLUS_MANY 2  /* objects of one kind that C code holds: this many or more share a row */
#define PLUS_ALIKE 8 /* owners with similar paths: this many or more share a row */

struct plus_owner {
    uint64_t shape;
    uint32_t node;
    int64_t amount;
};

/* One owner, or `count` owners that look alike, the largest first. */
struct plus_owner_row {
    const struct plus_owner *of;
    size_t count;
    int64_t amount; /* of all `count` */
};

struct plus_owner_rows {
    struct plus_owner_row all[PLUS_OWNERS]; /* largest first */
    size_t count;
};

struct plus_owners_search {
    const struct plus_reach *owners;
    const struct plus_mark *mark;
    int64_t least;
    struct plus_owner_rows rows;
    struct plus_owner_rows resized; /* tables that were made larger, and by how much */
    struct plus_record_table held;  /* sums of struct plus_together */
    /* Private to owner_search.c. */
    const uint64_t *excess;
    struct plus_owner *found;
    size_t count, room;
};

/* Fills in `rows`, `resized` and `held`; the caller has set the other fields.  0, or -ENOMEM. */
int
plus_owners_find(struct plus_owners_search *it);

/* Returns a limit in bytes: objects that C code holds share a row if they have less.  Without an earlier look, larger
 * ones get a row each. */
uint64_t
plus_owners_held_limit(const struct plus_owners_search *it);

/* True if objects of one kind that C code holds have grown together: either their number grew, or many small ones have
 * grown alike. */
bool
plus_owners_grow_together(const struct plus_owners_search *it, const struct plus_together *row);

int64_t
plus_owners_more(const struct plus_owners_search *it, const struct plus_together *row);
