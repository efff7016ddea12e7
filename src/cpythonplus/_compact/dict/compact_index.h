/* The index is cut into groups of 16 slots.  A group has 16 tags of one byte, and behind them the numbers of 16
 * entries, of one to four bytes: with three, for up to 16 million entries, a group is one cache line.
 *
 *     hash -> mixed -> upper half, scaled by the number of groups: the group; a byte of the rest: the tag
 *
 * A key is looked for in its group, among the slots with its tag, and, if the group has no vacant slot, in the next
 * one, and so on.  Nine of ten slots may be in use.  Even then a look-up reads 1.1 groups on average if the key exists,
 * 1.5 if it does not.  So the number of groups need not be a power of two, nor need there be spare room.
 *
 * If the slot of a deleted entry is in a group with a vacant slot, it becomes vacant again: no search has gone past
 * such a group.  Otherwise it only becomes free: searches go on past it.  When too few slots are vacant, the index is
 * made again.
 *
 * Rejected: linear probing of single slots with a smaller load (a power of two needs as much as before); Robin Hood
 * hashing (it reads an entry to know its distance from home); open tables of entries without an index (no order).
 *
 * No function here runs other code, or changes a reference count.  GIL held. */
#pragma once

#include "compact_entries.h"

#include <string.h>

#define PLUS_INDEX_SLOTS 16u
#define PLUS_INDEX_VACANT 0
#define PLUS_INDEX_FREE 1 /* was in use, in a group without a vacant slot */

#define ONES UINT64_C(0x0101010101010101)
#define TOPS UINT64_C(0x8080808080808080)

static inline uint64_t
plus_index_mixed(Py_hash_t hash)
{
    uint64_t bits = (uint64_t)hash;

    return (bits ^ bits >> 32) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline unsigned char
plus_index_tag(uint64_t bits)
{
    unsigned char tag = (unsigned char)(bits >> 22);

    return tag > PLUS_INDEX_FREE ? tag : (unsigned char)(tag + 2);
}

static inline uint32_t
plus_index_home(const struct plus_compact_parts *parts, uint64_t bits)
{
    return (uint32_t)((bits >> 32) * parts->groups >> 32);
}

static inline unsigned char *
plus_index_group(const struct plus_compact_parts *parts, uint32_t group)
{
    return parts->index + (size_t)group * PLUS_INDEX_SLOTS * (1u + parts->width);
}

static inline uint32_t
plus_index_next(const struct plus_compact_parts *parts, uint32_t group)
{
    return group + 1 < parts->groups ? group + 1 : 0;
}

/* Eight tags, the first one in the lowest byte. */
static inline uint64_t
plus_index_tags(const unsigned char *group, unsigned half)
{
    uint64_t tags;

    memcpy(&tags, group + 8 * half, sizeof tags);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    tags = __builtin_bswap64(tags);
#endif
    return tags;
}

/* A mask with the top bit of each byte that equals the tag.  The bit of the byte above a match may be set wrongly, so
 * compare the keys. */
static inline uint64_t
plus_index_equal(uint64_t tags, unsigned char tag)
{
    uint64_t other = tags ^ ONES * tag;

    return (other - ONES) & ~other & TOPS;
}

static inline unsigned
plus_index_lowest(uint64_t matches)
{
    return (unsigned)__builtin_ctzll(matches) / 8;
}

static inline bool
plus_index_has_vacant(const unsigned char *group)
{
    return (plus_index_equal(plus_index_tags(group, 0), PLUS_INDEX_VACANT) |
            plus_index_equal(plus_index_tags(group, 1), PLUS_INDEX_VACANT)) != 0;
}

static inline Py_ssize_t
plus_index_number(const struct plus_compact_parts *parts, const unsigned char *group, unsigned slot)
{
    const unsigned char *place = group + PLUS_INDEX_SLOTS + (size_t)slot * parts->width;
    uint16_t two;
    uint32_t four;

    switch (parts->width) {
    case 1:
        return *place;
    case 2:
        memcpy(&two, place, sizeof two);
        return two;
    case 3:
        return place[0] | place[1] << 8 | place[2] << 16;
    default:
        memcpy(&four, place, sizeof four);
        return four;
    }
}

/* Enter an entry.  The table ensures that there is a slot for it. */
void
plus_index_add(struct plus_compact_parts *parts, Py_hash_t hash, Py_ssize_t at);

/* Remove an entry that is in the index. */
void
plus_index_drop(struct plus_compact_parts *parts, Py_hash_t hash, Py_ssize_t at);

/* Make a new index for all entries, with room for `entries`; -1 without memory, and the old one stays. */
int
plus_index_make(struct plus_compact_parts *parts, Py_ssize_t entries);

/* Like plus_index_make(), after entries have moved to lower places.  Without memory for a new index the old one is
 * filled again, so this cannot fail. */
void
plus_index_again(struct plus_compact_parts *parts, Py_ssize_t entries);

/* groups: the number for `entries` at a load of nine tenths. width: bytes of an entry's number below `capacity`. bytes:
 * the size of an index. */
Py_ssize_t
plus_index_groups(Py_ssize_t entries);
uint8_t
plus_index_width(Py_ssize_t capacity);
size_t
plus_index_bytes(Py_ssize_t groups, uint8_t width);
