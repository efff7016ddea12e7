/* The table of a CompactDict: entries in the order of insertion, and no more room than they need.  GIL held.
 *
 *     up to 14 keys of exactly the types str, int, float, bytes, bool or None: pairs alone, found by a linear search
 *
 *         word ->  key value | key value | ...           the low 4 bits: number of pairs; the high 4 bits: holes
 *
 *     else
 *
 *         word ->  struct plus_compact_parts -> entries: key value [hash] | ...      the low 4 bits: 15
 *                                            -> index:   16 tags, 16 numbers | ...   from 15 entries on
 *
 * Blocks are at multiples of 16 below 2^60, which is checked when they are allocated.
 *
 * Keys of these types are called simple.  Neither their hash nor their equality runs other code, so their hashes need
 * not be stored: they are computed again.  With the first key that is not simple every entry gets a place for its hash.
 *
 * A deleted entry leaves a hole, a key that is NULL, as in the interpreter's dicts, so that the other entries keep
 * their places for an iterator.
 *
 * No function of this header runs other code. */
#pragma once

#include "../../_base/compat.h"

#define PLUS_COMPACT_SMALL 14 /* the most pairs of the first form */
#define PLUS_COMPACT_PARTS 15u

#define PLUS_COMPACT_HOLES 60 /* the first bit of the number of holes in the word */
#define PLUS_COMPACT_ADDRESS (((uintptr_t)1 << PLUS_COMPACT_HOLES) - 16)

/* The table of a CompactDict in one word; 0 if it is empty. */
struct plus_compact {
    uintptr_t word;
};

struct plus_compact_parts {
    Py_ssize_t used;     /* entries without holes */
    Py_ssize_t filled;   /* entries with holes */
    Py_ssize_t capacity; /* number of entries for which there is memory */
    Py_ssize_t first;    /* all entries before this one are holes */
    Py_ssize_t
        expected; /* the entry behind `last`, if `last` followed the entry found before it; else -1 */
    Py_ssize_t last; /* the entry that was found last */
    char *entries;
    unsigned char *index; /* NULL: linear search */
    uint32_t groups;      /* of 16 slots each */
    uint32_t vacant;      /* slots never used since the index was made */
    uint8_t width;        /* bytes of an entry's number in the index */
    bool hashed;          /* each entry has its hash behind it */
};

/* An entry; `hash` exists only if the table is hashed. */
struct plus_compact_entry {
    PyObject *key, *value; /* NULL for a hole */
    Py_hash_t hash;
};

static inline struct plus_compact_parts *
plus_compact_parts(const struct plus_compact *table)
{
    return (table->word & 15) == PLUS_COMPACT_PARTS
               ? (struct plus_compact_parts *)(table->word - PLUS_COMPACT_PARTS)
               : NULL;
}

/* The number of entries with holes: positions are below it. */
static inline Py_ssize_t
plus_compact_filled(const struct plus_compact *table)
{
    const struct plus_compact_parts *parts = plus_compact_parts(table);

    return parts != NULL ? parts->filled : (Py_ssize_t)(table->word & 15);
}

static inline struct plus_compact_entry *
plus_compact_at(const struct plus_compact *table, Py_ssize_t at)
{
    const struct plus_compact_parts *parts = plus_compact_parts(table);

    if (parts == NULL) {
        return (struct plus_compact_entry *)((table->word & PLUS_COMPACT_ADDRESS) +
                                             16 * (size_t)at);
    }
    return (struct plus_compact_entry *)(parts->entries + (parts->hashed ? 24 : 16) * (size_t)at);
}

static inline Py_ssize_t
plus_compact_used(const struct plus_compact *table)
{
    const struct plus_compact_parts *parts = plus_compact_parts(table);

    return parts != NULL ? parts->used
                         : (Py_ssize_t)((table->word & 15) - (table->word >> PLUS_COMPACT_HOLES));
}

/* The general case of the two functions below: there is a hole, or no entry at `at`. */
Py_ssize_t
plus_compact_next_far(const struct plus_compact *table, Py_ssize_t at);
Py_ssize_t
plus_compact_previous_far(const struct plus_compact *table, Py_ssize_t at);

/* The position of the first entry from `at` on, or of the last one up to `at`; -1 if there is none. */
static inline Py_ssize_t
plus_compact_next(const struct plus_compact *table, Py_ssize_t at)
{
    bool is_here = at < plus_compact_filled(table) && plus_compact_at(table, at)->key != NULL;

    return is_here ? at : plus_compact_next_far(table, at);
}

static inline Py_ssize_t
plus_compact_previous(const struct plus_compact *table, Py_ssize_t at)
{
    bool is_here =
        at >= 0 && at < plus_compact_filled(table) && plus_compact_at(table, at)->key != NULL;

    return is_here ? at : plus_compact_previous_far(table, at);
}

/* The hash of a key; -1 with an exception if it has none. */
static inline Py_hash_t
plus_compact_hash(PyObject *key)
{
    Py_hash_t hash = PyUnicode_CheckExact(key) ? ((PyASCIIObject *)key)->hash : -1;

    return hash != -1 ? hash : PyObject_Hash(key);
}

static inline size_t
plus_compact_stride(const struct plus_compact_parts *parts)
{
    return parts->hashed ? 24 : 16;
}

static inline Py_hash_t
plus_compact_hash_at(const struct plus_compact_parts *parts, const struct plus_compact_entry *entry)
{
    if (parts->hashed) {
        return entry->hash;
    }
    return PyUnicode_CheckExact(entry->key) ? ((PyASCIIObject *)entry->key)->hash
                                            : plus_compact_hash(entry->key);
}
