/* The owners of the heap, or of what has grown: which objects they are. */
#ifndef PLUS_MEMORY_OWNER_SEARCH_H
#define PLUS_MEMORY_OWNER_SEARCH_H

#include "owner_mark.h"
#include "together.h"

#define PLUS_OWNERS 40
#define PLUS_MANY 2  /* of the same that C code holds: these are told together */
#define PLUS_ALIKE 8 /* owners whose ways look alike: these are one row */

struct plus_owner {
    uint64_t shape;
    uint32_t node;
    int64_t amount;
};

/* One owner, or `count` of them that look alike, the largest first. */
struct plus_owner_row {
    const struct plus_owner *of;
    size_t count;
    int64_t amount; /* of all */
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
    struct plus_owner_rows resized; /* tables that have been made larger, and by how much */
    struct plus_record_table held;  /* told together */
    /* Its own. */
    const uint64_t *excess;
    struct plus_owner *found;
    size_t count, room;
};

/* Fills in `rows`, `resized` and `held` of a search that has the rest.  0, or -ENOMEM. */
int
plus_owners_find(struct plus_owners_search *it);

/* What C code holds is told together if it has less: without an earlier look, what has much is told by itself. */
uint64_t
plus_owners_held_limit(const struct plus_owners_search *it);

/* Whether what C code holds of one kind has grown as many of the same: because there are more, or because many small ones have
 * grown alike. */
bool
plus_owners_grow_together(const struct plus_owners_search *it, const struct plus_together *row);

int64_t
plus_owners_more(const struct plus_owners_search *it, const struct plus_together *row);

#endif
