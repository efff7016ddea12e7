/* A set of addresses, with one bit for each 16 bytes of the chunks that contain them: for objects, which are at
 * multiples of 16.  Knows nothing of Python; a set belongs to one thread at a time. */
#pragma once

#include "record_table.h"

struct plus_granules {
    struct plus_record_table chunks;
    struct plus_granules_chunk *last; /* the chunk of the last address */
};

/* An empty set; all zero is valid too. */
#define PLUS_GRANULES_EMPTY ((struct plus_granules){.last = NULL})

/* 1 if the address is new in the set, 0 if it was there, -ENOMEM if it cannot be added.  The address is rounded down to
 * a multiple of 16. */
int
plus_granules_add(struct plus_granules *set, const void *address);

/* True if the address is in the set. */
int
plus_granules_has(struct plus_granules *set, const void *address);

/* The bytes of the set. */
size_t
plus_granules_bytes(const struct plus_granules *set);

/* Free all memory of the set and leave it empty. */
void
plus_granules_clear(struct plus_granules *set);
