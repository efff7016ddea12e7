/* See compact_table.h. */
#include "compact_table.h"

#include "compact_index.h"

/* ---- entries ------------------------------------------------------------------------------------- */

static uintptr_t
pairs_word(const void *pairs, Py_ssize_t count, Py_ssize_t holes)
{
    return (uintptr_t)pairs | (uintptr_t)count | (uintptr_t)holes << PLUS_COMPACT_HOLES;
}

static void *
pairs_of(const struct plus_compact *table)
{
    return (void *)(table->word & PLUS_COMPACT_ADDRESS);
}

/* ---- growing and shrinking ----------------------------------------------------------------------- */

/* Allocate a block whose address leaves the low and high bits free, as with all allocators of CPython on 64 bits. */
static void *
allocate(size_t bytes)
{
    void *memory = PyMem_Malloc(bytes);

    if (((uintptr_t)memory & ~PLUS_COMPACT_ADDRESS) != 0) {
        PyMem_Free(memory);
        memory = NULL;
    }
    return memory;
}

static int
out_of_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

static void
close_holes(struct plus_compact_parts *parts)
{
    size_t stride = plus_compact_stride(parts), kept = 0;

    for (Py_ssize_t i = 0; i < parts->filled; i++) {
        const char *entry = parts->entries + stride * (size_t)i;
        if (((const struct plus_compact_entry *)entry)->key != NULL) {
            memmove(parts->entries + stride * kept++, entry, stride);
        }
    }
    parts->filled = (Py_ssize_t)kept;
    parts->first = 0;
    parts->expected = -1;
}

static int
set_capacity(struct plus_compact_parts *parts, Py_ssize_t capacity)
{
    /* The index has numbers of at most four bytes. */
    if ((size_t)capacity > UINT32_MAX) {
        return -1;
    }
    char *entries = PyMem_Realloc(parts->entries, plus_compact_stride(parts) *
                                                      (size_t)(capacity > 0 ? capacity : 1));

    if (entries == NULL) {
        return -1;
    }
    parts->entries = entries;
    parts->capacity = capacity;
    return 0;
}

/* Change the first form into the second; the entries keep their places. */
static struct plus_compact_parts *
make_parts(struct plus_compact *table, bool hashed, Py_ssize_t capacity)
{
    Py_ssize_t filled = plus_compact_filled(table);
    struct plus_compact_parts *parts = allocate(sizeof *parts);

    if (parts == NULL) {
        return NULL;
    }
    *parts = (struct plus_compact_parts){.hashed = hashed, .expected = -1};
    if (set_capacity(parts, capacity > filled ? capacity : filled) < 0) {
        PyMem_Free(parts);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < filled; i++) {
        const struct plus_compact_entry *from = plus_compact_at(table, i);
        struct plus_compact_entry *to =
            (struct plus_compact_entry *)(parts->entries + plus_compact_stride(parts) * (size_t)i);
        to->key = from->key;
        to->value = from->value;
        if (hashed) {
            to->hash = from->key != NULL ? plus_compact_hash(from->key) : 0;
        }
        parts->used += from->key != NULL;
    }
    parts->filled = filled;
    PyMem_Free(pairs_of(table));
    table->word = (uintptr_t)parts | PLUS_COMPACT_PARTS;
    return parts;
}

/* Give each entry a place for its hash, for the first key that is not simple. */
static int
add_hashes(struct plus_compact_parts *parts)
{
    parts->hashed = true;
    if (set_capacity(parts, parts->capacity) < 0) {
        parts->hashed = false;
        return -1;
    }
    for (Py_ssize_t i = parts->filled; i-- > 0;) {
        struct plus_compact_entry pair = {0};
        memcpy(&pair, parts->entries + 16 * (size_t)i, 16);
        if (pair.key != NULL) {
            pair.hash = plus_compact_hash(pair.key);
        }
        memcpy(parts->entries + 24 * (size_t)i, &pair, 24);
    }
    return 0;
}

/* Make room for one more entry. */
static int
make_room(struct plus_compact_parts *parts)
{
    Py_ssize_t holes = parts->filled - parts->used;

    if (parts->filled < parts->capacity) {
        return 0;
    }
    if (holes > 0 && holes >= parts->capacity / 8) {
        close_holes(parts);
        plus_index_again(parts, parts->used + 1);
        return 0;
    }
    /* Large blocks are moved without being copied. */
    Py_ssize_t more = parts->capacity < 1 << 13 ? parts->capacity / 16 : parts->capacity / 32;
    return set_capacity(parts, parts->capacity + more + 1);
}

/* Make room for one more entry in the index. */
static int
make_slot(struct plus_compact_parts *parts)
{
    Py_ssize_t slots = (Py_ssize_t)parts->groups * PLUS_INDEX_SLOTS, entries = parts->used + 1;

    if (parts->index == NULL && parts->filled < PLUS_COMPACT_SMALL) {
        return 0;
    }
    if (parts->index != NULL && entries * 10 <= slots * 9 && parts->vacant > slots / 32 &&
        plus_index_width(parts->capacity) <= parts->width) {
        return 0;
    }
    /* An index that is only full of deleted entries keeps its size. */
    bool is_full = entries * 10 > slots * 9;
    return plus_index_make(parts,
                           is_full && parts->index != NULL ? entries + entries / 8 : entries);
}

static int
append_pair(struct plus_compact *table, PyObject *key, PyObject *value)
{
    Py_ssize_t filled = plus_compact_filled(table);
    Py_ssize_t used = plus_compact_used(table);
    void *pairs = pairs_of(table);

    /* Close holes as late as possible, as dict does: until then iterators find the other entries in their places. */
    if (used < filled && (filled == PLUS_COMPACT_SMALL || (filled >= 4 && used * 2 < filled))) {
        struct plus_compact_parts all = {.entries = pairs, .filled = filled};
        close_holes(&all);
        table->word = pairs_word(pairs, all.filled, 0);
        filled = used;
    }
    void *larger = allocate(16 * (size_t)(filled + 1));
    if (larger == NULL) {
        return -1;
    }
    if (filled > 0) {
        memcpy(larger, pairs, 16 * (size_t)filled);
    }
    PyMem_Free(pairs);
    table->word = pairs_word(larger, filled + 1, filled - used);
    struct plus_compact_entry *entry = plus_compact_at(table, filled);
    entry->key = Py_NewRef(key);
    entry->value = Py_NewRef(value);
    return 0;
}

int
plus_compact_append(struct plus_compact *table, PyObject *key, Py_hash_t hash, PyObject *value)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);
    bool simple = PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) ||
                  PyBytes_CheckExact(key) || PyBool_Check(key) || key == Py_None;

    if (parts == NULL) {
        if (simple && (plus_compact_filled(table) < PLUS_COMPACT_SMALL ||
                       plus_compact_used(table) < PLUS_COMPACT_SMALL)) {
            return append_pair(table, key, value) < 0 ? out_of_memory() : 0;
        }
        parts = make_parts(table, !simple, plus_compact_filled(table) + 1);
    }
    if (parts == NULL || (!simple && !parts->hashed && add_hashes(parts) < 0) ||
        make_room(parts) < 0 || make_slot(parts) < 0) {
        return out_of_memory();
    }
    struct plus_compact_entry *entry =
        (struct plus_compact_entry *)(parts->entries +
                                      plus_compact_stride(parts) * (size_t)parts->filled);
    entry->key = Py_NewRef(key);
    entry->value = Py_NewRef(value);
    if (parts->hashed) {
        entry->hash = hash;
    }
    if (parts->index != NULL) {
        plus_index_add(parts, hash, parts->filled);
    }
    parts->filled++;
    parts->used++;
    return 0;
}

/* Free unneeded memory of a table that has lost three quarters of its entries.  Without memory it stays as it is. */
static void
shrink(struct plus_compact_parts *parts)
{
    if (parts->capacity <= 2 * PLUS_COMPACT_SMALL || parts->used >= parts->capacity / 4) {
        return;
    }
    close_holes(parts);
    if (parts->used <= PLUS_COMPACT_SMALL) {
        PyMem_Free(parts->index);
        parts->index = NULL;
        parts->groups = parts->vacant = 0;
    }
    (void)set_capacity(parts, parts->used);
    plus_index_again(parts, parts->used);
}

static void
take(struct plus_compact *table, Py_ssize_t at, PyObject **key, PyObject **value)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);
    struct plus_compact_entry *entry = plus_compact_at(table, at);

    *key = entry->key;
    *value = entry->value;
    if (parts != NULL) {
        if (parts->index != NULL) {
            plus_index_drop(parts, plus_compact_hash_at(parts, entry), at);
        }
        parts->used--;
    }
    else {
        table->word += (uintptr_t)1 << PLUS_COMPACT_HOLES;
    }
    entry->key = entry->value = NULL;
}

void
plus_compact_remove(struct plus_compact *table, Py_ssize_t at, PyObject **key, PyObject **value)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);

    take(table, at, key, value);
    if (parts != NULL) {
        shrink(parts);
    }
}

void
plus_compact_pop(struct plus_compact *table, PyObject **key, PyObject **value)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);
    Py_ssize_t at = plus_compact_previous(table, PY_SSIZE_T_MAX);

    Py_ssize_t used = plus_compact_used(table) - 1;
    take(table, at, key, value);
    if (parts != NULL) {
        parts->filled = at;
        parts->first = parts->first < at ? parts->first : at;
        shrink(parts);
        return;
    }
    void *pairs = pairs_of(table);
    if (at == 0) {
        PyMem_Free(pairs);
        table->word = 0;
        return;
    }
    /* If there is no memory, the block stays as it is. */
    void *smaller = allocate(16 * (size_t)at);
    if (smaller != NULL) {
        memcpy(smaller, pairs, 16 * (size_t)at);
        PyMem_Free(pairs);
        pairs = smaller;
    }
    table->word = pairs_word(pairs, at, at - used);
}

int
plus_compact_reserve(struct plus_compact *table, Py_ssize_t count)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);

    if (count <= PLUS_COMPACT_SMALL) {
        return 0;
    }
    if (parts == NULL) {
        parts = make_parts(table, false, count);
    }
    if (parts == NULL || (parts->capacity < count && set_capacity(parts, count) < 0) ||
        ((parts->index == NULL || plus_index_groups(count) > parts->groups) &&
         plus_index_make(parts, count) < 0)) {
        return out_of_memory();
    }
    return 0;
}

void
plus_compact_fit(struct plus_compact *table)
{
    struct plus_compact_parts *parts = plus_compact_parts(table);

    if (parts == NULL || parts->capacity - parts->filled <= parts->filled / 16) {
        return;
    }
    (void)set_capacity(parts, parts->filled);
    if (parts->index != NULL && plus_index_groups(parts->used) < parts->groups) {
        plus_index_again(parts, parts->used);
    }
}

/* ---- whole tables -------------------------------------------------------------------------------- */

int
plus_compact_copy(const struct plus_compact *table, struct plus_compact *copy)
{
    const struct plus_compact_parts *parts = plus_compact_parts(table);

    copy->word = 0;
    if (plus_compact_reserve(copy, plus_compact_used(table)) < 0) {
        return -1;
    }
    for (Py_ssize_t i = plus_compact_next(table, 0); i >= 0; i = plus_compact_next(table, i + 1)) {
        const struct plus_compact_entry *entry = plus_compact_at(table, i);
        Py_hash_t hash =
            parts != NULL ? plus_compact_hash_at(parts, entry) : 0; /* unused by pairs */
        if (plus_compact_append(copy, entry->key, hash, entry->value) < 0) {
            plus_compact_clear(copy);
            return -1;
        }
    }
    return 0;
}

void
plus_compact_clear(struct plus_compact *table)
{
    struct plus_compact old = *table;
    struct plus_compact_parts *parts = plus_compact_parts(&old);

    table->word = 0;
    for (Py_ssize_t i = 0; i < plus_compact_filled(&old); i++) {
        struct plus_compact_entry *entry = plus_compact_at(&old, i);
        Py_XDECREF(entry->key);
        Py_XDECREF(entry->value);
    }
    if (parts != NULL) {
        PyMem_Free(parts->entries);
        PyMem_Free(parts->index);
        PyMem_Free(parts);
    }
    else {
        PyMem_Free(pairs_of(&old));
    }
}

Py_ssize_t
plus_compact_bytes(const struct plus_compact *table)
{
    const struct plus_compact_parts *parts = plus_compact_parts(table);

    if (parts == NULL) {
        return 16 * plus_compact_filled(table);
    }
    return (Py_ssize_t)(sizeof *parts + plus_compact_stride(parts) * (size_t)parts->capacity +
                        plus_index_bytes(parts->groups, parts->width));
}
