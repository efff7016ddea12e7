/* A set of addresses, one bit for each 16 bytes of the memory that it has addresses in: for objects, which
 * lie at multiples of 16.  Knows nothing of Python; a set belongs to one thread at a time. */
#ifndef PLUS_BASE_GRANULES_H
#define PLUS_BASE_GRANULES_H

#include "record_table.h"

struct plus_granules {
    struct plus_record_table chunks;
    struct plus_granules_chunk *last; /* where the last address was */
};

/* An empty set: all zero will do. */
#define PLUS_GRANULES_EMPTY ((struct plus_granules){.last = NULL})

/* 1: the address is new in the set; 0: it was there; -ENOMEM: it is not, and cannot be.  Of an address that
 * is no multiple of 16 the rest is ignored. */
int
plus_granules_add(struct plus_granules *set, const void *address);

/* Whether it is there. */
int
plus_granules_has(struct plus_granules *set, const void *address);

/* Bytes that the set takes. */
size_t
plus_granules_bytes(const struct plus_granules *set);

/* Frees all that the set took and leaves it empty. */
void
plus_granules_clear(struct plus_granules *set);

#endif
