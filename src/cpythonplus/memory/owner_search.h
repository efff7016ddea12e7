/* The owners of the heap, or of what has grown: which objects they are. */
#ifndef PLUS_MEMORY_OWNER_SEARCH_H
#define PLUS_MEMORY_OWNER_SEARCH_H

#include "owner_mark.h"
#include "together.h"

#define PLUS_OWNERS 40
#define PLUS_MANY 2 /* of the same that C code holds: these are told together */

struct plus_owner {
    uint32_t node;
    int64_t amount;
};

struct plus_owners_search {
    const struct plus_reach *owners;
    const struct plus_mark *mark;
    int64_t least;
    struct plus_owner rows[PLUS_OWNERS]; /* largest first */
    size_t count;
    struct plus_record_table held; /* told together */
};

/* Fills in `rows` and `held` of a search that has the rest.  0, or -ENOMEM. */
int
plus_owners_find(struct plus_owners_search *it);

/* What C code holds is told together if it has less: without an earlier look, what has much is told by itself. */
uint64_t
plus_owners_held_limit(const struct plus_owners_search *it);

int64_t
plus_owners_more(const struct plus_owners_search *it, const struct plus_together *row);

#endif
