/* Chunks of 1 MiB, each with a bit map of 8 KiB: 0.8 % of a densely used heap.  Walks meet neighbours in the heap one
 * after the other, so the last chunk is tried first. */
#include "granules.h"

#include <errno.h>

#define CHUNK_SHIFT 20
#define GRANULE_SHIFT 4
#define WORDS ((size_t)1 << (CHUNK_SHIFT - GRANULE_SHIFT - 6))

struct plus_granules_chunk {
    const void *key;
    uint64_t bits[WORDS];
};

/* Never NULL. */
static const void *
key_of(const void *address)
{
    return (const void *)((uintptr_t)address >> CHUNK_SHIFT << CHUNK_SHIFT | 1);
}

/* NULL if there is none. */
static struct plus_granules_chunk *
find_chunk(struct plus_granules *set, const void *key)
{
    if (set->last != NULL && set->last->key == key) {
        return set->last;
    }
    struct plus_granules_chunk *chunk = plus_record_table_find(&set->chunks, key);
    set->last = chunk != NULL ? chunk : set->last;
    return chunk;
}

static struct plus_granules_chunk *
add_chunk(struct plus_granules *set, const void *key)
{
    set->chunks.record_bytes = sizeof(struct plus_granules_chunk); /* the set may be all zero */
    struct plus_granules_chunk *chunk = plus_record_table_add(&set->chunks, key);
    set->last = chunk != NULL ? chunk : set->last;
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
    const void *key = key_of(address);
    struct plus_granules_chunk *chunk = find_chunk(set, key);
    uint64_t bit;

    if (chunk == NULL && (chunk = add_chunk(set, key)) == NULL) {
        return -ENOMEM;
    }
    uint64_t *word = word_of(chunk, (uintptr_t)address, &bit);
    int is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

int
plus_granules_has(struct plus_granules *set, const void *address)
{
    struct plus_granules_chunk *chunk = find_chunk(set, key_of(address));
    uint64_t bit;

    return chunk != NULL && (*word_of(chunk, (uintptr_t)address, &bit) & bit) != 0;
}

size_t
plus_granules_bytes(const struct plus_granules *set)
{
    return plus_record_table_bytes(&set->chunks);
}

void
plus_granules_clear(struct plus_granules *set)
{
    plus_record_table_clear(&set->chunks);
    set->last = NULL;
}
