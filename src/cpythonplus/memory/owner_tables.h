/* Tables of dicts, sets and lists that have been made larger than what has come into them since: a table is doubled at once,
 * and is no leak. */
#ifndef PLUS_MEMORY_OWNER_TABLES_H
#define PLUS_MEMORY_OWNER_TABLES_H

#include "owner_mark.h"

/* By so many bytes, of a node that is noted in the mark. */
uint64_t
plus_table_excess(const struct plus_reach *owners, const struct plus_mark *mark, uint32_t node);

/* A new array: of each node by how much too much is reached through it; NULL with `*status` 0: nowhere, or there is no mark;
 * with -ENOMEM: no memory. */
uint64_t *
plus_tables_find(const struct plus_reach *owners, const struct plus_mark *mark, int *status);

#endif
