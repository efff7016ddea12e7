/* See compact_index.h. */
#include "compact_index.h"

static inline void
put_number(const struct plus_compact_parts *parts, unsigned char *group, unsigned slot,
           Py_ssize_t at)
{
    unsigned char *place = group + PLUS_INDEX_SLOTS + (size_t)slot * parts->width;
    uint16_t two = (uint16_t)at;
    uint32_t four = (uint32_t)at;

    switch (parts->width) {
    case 1:
        *place = (unsigned char)at;
        break;
    case 2:
        memcpy(place, &two, sizeof two);
        break;
    case 3:
        place[0] = (unsigned char)at;
        place[1] = (unsigned char)(at >> 8);
        place[2] = (unsigned char)(at >> 16);
        break;
    default:
        memcpy(place, &four, sizeof four);
    }
}

/* A vacant or free slot of a group; PLUS_INDEX_SLOTS if there is none. */
static inline unsigned
open_slot(const unsigned char *group)
{
    for (unsigned half = 0; half < 2; half++) {
        uint64_t open = plus_index_equal(plus_index_tags(group, half) & ~ONES, PLUS_INDEX_VACANT);
        if (open != 0) {
            return 8 * half + plus_index_lowest(open);
        }
    }
    return PLUS_INDEX_SLOTS;
}

/* Enter an entry.  The caller ensures that there is a slot for it. */
void
plus_index_add(struct plus_compact_parts *parts, Py_hash_t hash, Py_ssize_t at)
{
    uint64_t bits = plus_index_mixed(hash);
    uint32_t number = plus_index_home(parts, bits);
    unsigned char *group = plus_index_group(parts, number);
    unsigned slot;

    while ((slot = open_slot(group)) == PLUS_INDEX_SLOTS) {
        number = plus_index_next(parts, number);
        group = plus_index_group(parts, number);
    }
    parts->vacant -= group[slot] == PLUS_INDEX_VACANT;
    group[slot] = plus_index_tag(bits);
    put_number(parts, group, slot, at);
}

/* Remove an entry that is in the index. */
void
plus_index_drop(struct plus_compact_parts *parts, Py_hash_t hash, Py_ssize_t at)
{
    uint64_t bits = plus_index_mixed(hash);
    unsigned char tag = plus_index_tag(bits);
    uint32_t number = plus_index_home(parts, bits);

    for (;; number = plus_index_next(parts, number)) {
        unsigned char *group = plus_index_group(parts, number);
        for (unsigned slot = 0; slot < PLUS_INDEX_SLOTS; slot++) {
            if (group[slot] == tag && plus_index_number(parts, group, slot) == at) {
                bool becomes_vacant = plus_index_has_vacant(group);
                group[slot] = becomes_vacant ? PLUS_INDEX_VACANT : PLUS_INDEX_FREE;
                parts->vacant += becomes_vacant;
                return;
            }
        }
    }
}

uint8_t
plus_index_width(Py_ssize_t capacity)
{
    return capacity <= 1 << 8 ? 1 : capacity <= 1 << 16 ? 2 : capacity <= 1 << 24 ? 3 : 4;
}

/* The number of groups for `entries` at a load of nine tenths.  It is at least one: a search ends only at a vacant
 * slot. */
Py_ssize_t
plus_index_groups(Py_ssize_t entries)
{
    Py_ssize_t groups = (entries * 10 + 9 * PLUS_INDEX_SLOTS - 1) / (9 * PLUS_INDEX_SLOTS);

    return groups > 0 ? groups : 1;
}

size_t
plus_index_bytes(Py_ssize_t groups, uint8_t width)
{
    return (size_t)groups * PLUS_INDEX_SLOTS * (1u + width);
}

static void
index_fill(struct plus_compact_parts *parts)
{
    parts->vacant = parts->groups * PLUS_INDEX_SLOTS;
    for (Py_ssize_t i = 0; i < parts->filled; i++) {
        const struct plus_compact_entry *entry =
            (struct plus_compact_entry *)(parts->entries + plus_compact_stride(parts) * (size_t)i);
        if (entry->key != NULL) {
            plus_index_add(parts, plus_compact_hash_at(parts, entry), i);
        }
    }
}

/* Make a new index for all entries, with room for `entries`; -1 without memory, and the old one stays. */
int
plus_index_make(struct plus_compact_parts *parts, Py_ssize_t entries)
{
    Py_ssize_t groups = plus_index_groups(entries);
    uint8_t width = plus_index_width(parts->capacity > entries ? parts->capacity : entries);

    if (groups > (Py_ssize_t)(UINT32_MAX / PLUS_INDEX_SLOTS)) {
        return -1;
    }
    unsigned char *index = PyMem_Calloc(1, plus_index_bytes(groups, width));
    if (index == NULL) {
        return -1;
    }
    PyMem_Free(parts->index);
    parts->index = index;
    parts->groups = (uint32_t)groups;
    parts->width = width;
    index_fill(parts);
    return 0;
}

/* Like plus_index_make(), after entries have moved to lower places.  Without memory for a new index the old one is
 * filled again, so this cannot fail. */
void
plus_index_again(struct plus_compact_parts *parts, Py_ssize_t entries)
{
    if (parts->index != NULL && plus_index_make(parts, entries) < 0) {
        memset(parts->index, PLUS_INDEX_VACANT, plus_index_bytes(parts->groups, parts->width));
        index_fill(parts);
    }
}
