/* Chunks of 1 MiB, each with a bit map of 8 KiB: 0.8 % of a heap that is densely used.  Chunks are found through a
 * hash table; neighbours in the heap are met one after the other, so the last chunk is tried first. */
#include "granules.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK_SHIFT 20
#define GRANULE_SHIFT 4
#define WORDS ((size_t)1 << (CHUNK_SHIFT - GRANULE_SHIFT - 6))
#define FIRST_CAPACITY 64

struct plus_granules_chunk {
    uintptr_t number; /* address >> CHUNK_SHIFT */
    uint64_t bits[WORDS];
};

static struct plus_granules_chunk **
slot_of(struct plus_granules_chunk **table, size_t mask, uintptr_t number)
{
    /* Knuth's multiplier spreads neighbours (TAOCP 3, 6.4). */
    size_t i = (size_t)((uint64_t)number * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;

    while (table[i] != NULL && table[i]->number != number) {
        i = (i + 1) & mask;
    }
    return &table[i];
}

/* At most half full. */
static int
grow(struct plus_granules *set)
{
    size_t capacity = set->table == NULL ? FIRST_CAPACITY : 2 * (set->mask + 1);
    struct plus_granules_chunk **table = calloc(capacity, sizeof(struct plus_granules_chunk *));

    if (table == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; set->table != NULL && i <= set->mask; i++) {
        if (set->table[i] != NULL) {
            *slot_of(table, capacity - 1, set->table[i]->number) = set->table[i];
        }
    }
    free(set->table);
    set->table = table;
    set->mask = capacity - 1;
    return 0;
}

/* NULL: not there. */
static struct plus_granules_chunk *
find_chunk(struct plus_granules *set, uintptr_t number)
{
    if (set->last != NULL && set->last->number == number) {
        return set->last;
    }
    struct plus_granules_chunk *chunk =
        set->table == NULL ? NULL : *slot_of(set->table, set->mask, number);
    set->last = chunk != NULL ? chunk : set->last;
    return chunk;
}

static struct plus_granules_chunk *
add_chunk(struct plus_granules *set, uintptr_t number)
{
    if ((set->table == NULL || 2 * set->count > set->mask) && grow(set) < 0) {
        return NULL;
    }
    struct plus_granules_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->number = number;
    *slot_of(set->table, set->mask, number) = chunk;
    set->count++;
    set->last = chunk;
    return chunk;
}

static uint64_t *
word_of(struct plus_granules_chunk *chunk, uintptr_t value, uint64_t *bit)
{
    size_t granule = (value >> GRANULE_SHIFT) & (WORDS * 64 - 1);

    *bit = UINT64_C(1) << (granule & 63);
    return &chunk->bits[granule >> 6];
}

int
plus_granules_add(struct plus_granules *set, const void *address)
{
    uintptr_t value = (uintptr_t)address, number = value >> CHUNK_SHIFT;
    struct plus_granules_chunk *chunk = find_chunk(set, number);
    uint64_t bit;

    if (chunk == NULL && (chunk = add_chunk(set, number)) == NULL) {
        return -ENOMEM;
    }
    uint64_t *word = word_of(chunk, value, &bit);
    int is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

int
plus_granules_has(struct plus_granules *set, const void *address)
{
    struct plus_granules_chunk *chunk = find_chunk(set, (uintptr_t)address >> CHUNK_SHIFT);
    uint64_t bit;

    return chunk != NULL && (*word_of(chunk, (uintptr_t)address, &bit) & bit) != 0;
}

size_t
plus_granules_bytes(const struct plus_granules *set)
{
    size_t table = set->table == NULL ? 0 : (set->mask + 1) * sizeof(struct plus_granules_chunk *);

    return table + set->count * sizeof(struct plus_granules_chunk);
}

void
plus_granules_clear(struct plus_granules *set)
{
    for (size_t i = 0; set->table != NULL && i <= set->mask; i++) {
        free(set->table[i]);
    }
    free(set->table);
    *set = PLUS_GRANULES_EMPTY;
}
