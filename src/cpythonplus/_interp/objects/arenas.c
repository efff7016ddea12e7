/* Finding the vector of arenas, which no symbol leads to.
 *
 *     a block ----> its pool's header ----> `prev`: a place in the table of half-used pools
 *                           |                    |
 *                    its arena's index           |  3.12 on: the vector's address is behind the table, with its length
 *                           |                    |  3.11:    it is somewhere in the same data segment
 *                           v                    v
 *                        vector[index].address <= pool < that + an arena
 *
 * 1. find_table: blocks are requested, size by size, until one comes from the first pool of its class's list.  The
 *    `prev` of that pool is the list's head, which is in the table.  The table is confirmed if all of its 32 entries
 *    are heads of sound lists: empty, or with a pool of that size whose `prev` points back.
 * 2. read_all: the vector's address is read from behind the table (3.12), or each word of the segment is tried (3.11):
 *    the entry of the pool of step 1 must fit.
 * 3. read_vector: each entry's numbers agree with each other, and with the headers of all its pools: their arena's
 *    index, how many are empty.  From 3.12 on their number is the interpreter's count.
 *
 * GIL held all the time: then no other thread takes or frees a block.  All memory is read through the kernel, for a
 * wrong guess in one step is an address in the next one.
 *
 * Rejected: looking symbols up (they differ from version to version, and a stripped interpreter has none). */
#include "arenas.h"

#include "../facts/facts.h"
#include "../facts/probes.h"

#include "../../_base/memory/page.h"

/* From 3.15 on arenas can be built larger, for huge pages. */
#ifdef PYMALLOC_USE_HUGEPAGES
#define ARENA_BYTES ((uintptr_t)2 << 20)
#else
#define ARENA_BYTES ((uintptr_t)1 << 20)
#endif
#define POOLS (ARENA_BYTES / PLUS_POOL_BYTES)

#define CLASSES (PLUS_LARGEST_BLOCK / PLUS_BLOCK_STEP)
#define ENTRIES_LIMIT ((size_t)1 << 24) /* 16 TiB of arenas */

/* One entry of the vector (Objects/obmalloc.c, 'arena_object'). */
struct entry {
    uintptr_t address; /* 0: no arena */
    uintptr_t carved;
    uint32_t free_pools, total_pools;
    uintptr_t free_list, next, prev;
};

/* The structure behind the table of half-used pools from 3.12 on ('_obmalloc_mgmt'). */
struct management {
    uintptr_t vector;
    uint32_t capacity;
    uintptr_t unused, usable;
    uintptr_t last_by_free[POOLS + 1];
    size_t count, ever, most;
    Py_ssize_t larger_blocks;
};

/* The table has two words for each class, the `next` and `prev` of a pool header whose first words overlap the entry
 * before: the list of the class's half-used pools goes through it. */
struct table {
    uintptr_t words[2 * CLASSES];
};

static const char no_pymalloc[] = "objects do not come from pymalloc here";
static const char unreadable[] = PLUS_MEMORY_UNREADABLE;
static const char not_as_known[] = "pymalloc is not laid out as expected";

/* ---- the table of half-used pools ---------------------------------------------------------------- */

static uintptr_t
head_of_class(uintptr_t table, size_t index)
{
    return table + 2 * index * sizeof(uintptr_t) - offsetof(struct plus_pool_header, next);
}

static bool
table_is_sound(uintptr_t address)
{
    struct table table;

    if (!plus_read_memory(address, &table, sizeof table)) {
        return false;
    }
    for (size_t i = 0; i < CLASSES; i++) {
        uintptr_t head = head_of_class(address, i), next = table.words[2 * i];
        struct plus_pool_header header;

        if (next == head) {
            continue; /* no pool of this class is half used */
        }
        if (next % PLUS_POOL_BYTES != 0 ||
            !plus_read_memory(plus_pool_header_at(next), &header, sizeof header) ||
            !plus_pool_is_used(&header) || header.size_index != i ||
            (uintptr_t)header.prev != head) {
            return false;
        }
    }
    return true;
}

/* A full pool is in no list.  `*pool` becomes the pool that led to the table. */
static uintptr_t
find_table(uintptr_t *pool)
{
    for (size_t size = PLUS_BLOCK_STEP; size <= PLUS_LARGEST_BLOCK - 2 * PLUS_BLOCK_STEP;
         size += PLUS_BLOCK_STEP) {
        struct plus_pool_header header;
        void *block = PyObject_Malloc(size);
        uintptr_t own = plus_pool_of(block);
        bool known = block != NULL &&
                     plus_read_memory(plus_pool_header_at(own), &header, sizeof header) &&
                     plus_pool_is_used(&header) && header.taken < plus_pool_blocks(&header);

        PyObject_Free(block);
        if (!known) {
            continue;
        }
        uintptr_t table = (uintptr_t)header.prev - head_of_class(0, header.size_index);
        /* Freeing may have emptied the pool: then its header is no longer in the list. */
        if (header.taken > 1 && table_is_sound(table)) {
            *pool = own;
            return table;
        }
    }
    return 0;
}

/* ---- the vector ---------------------------------------------------------------------------------- */

static bool
has_pool(const struct entry *entry, uintptr_t pool)
{
    return entry->address != 0 && pool >= entry->address && pool - entry->address < ARENA_BYTES;
}

/* True if the numbers of an entry agree with each other. */
static bool
entry_is_sound(const struct entry *entry)
{
    uintptr_t first = plus_arena_pools(entry->address);
    size_t total = (entry->address + ARENA_BYTES - first) / PLUS_POOL_BYTES;

    return entry->address % plus_page_bytes() == 0 && entry->total_pools == total &&
           entry->free_pools <= total && entry->carved % PLUS_POOL_BYTES == 0 &&
           entry->carved >= first && entry->carved <= first + total * PLUS_POOL_BYTES;
}

/* True if the pools of an arena agree with its entry; adds the number of blocks in use. */
static bool
pools_are_sound(const struct entry *entry, size_t index, size_t *taken)
{
    uintptr_t pool = plus_arena_pools(entry->address);
    size_t never_carved = entry->total_pools - (entry->carved - pool) / PLUS_POOL_BYTES;
    size_t carved = entry->total_pools - never_carved, empty = 0;
    struct plus_pool_header headers[POOLS];

    if (!plus_read_pools(pool, headers, carved)) {
        return false;
    }
    for (size_t i = 0; i < carved; i++) {
        if (headers[i].arena != index ||
            (headers[i].taken > 0 && !plus_pool_is_used(&headers[i]))) {
            return false;
        }
        empty += headers[i].taken == 0;
        *taken += headers[i].taken;
    }
    return empty + never_carved == entry->free_pools;
}

static int
by_address(const void *left, const void *right)
{
    uintptr_t a = ((const struct plus_arena *)left)->start;
    uintptr_t b = ((const struct plus_arena *)right)->start;

    return a < b ? -1 : a > b;
}

static bool
append(struct plus_arenas *arenas, const struct entry *entry)
{
    if ((arenas->count & (arenas->count - 1)) == 0) { /* full: doubled each time */
        size_t room = arenas->count == 0 ? 1 : 2 * arenas->count;
        struct plus_arena *list = realloc(arenas->list, room * sizeof *list);
        if (list == NULL) {
            return false;
        }
        arenas->list = list;
    }
    arenas->list[arenas->count++] = (struct plus_arena){
        .start = entry->address,
        .end = entry->address + ARENA_BYTES,
        .carved = entry->carved,
        .free_pools = entry->free_pools,
        .total_pools = entry->total_pools,
    };
    return true;
}

/* Read a vector of up to `capacity` entries.  If its length is unknown (`exactly` is false), read up to the first
 * unsound one: all entries of the vector are sound, and no other data can pass as an entry. */
static const char *
read_vector(struct plus_arenas *arenas, uintptr_t vector, size_t capacity, bool exactly)
{
    for (size_t i = 0; i < capacity; i++) {
        struct entry entry;
        if (!plus_read_memory(PLUS_AT(PLUS_FACT_ARENAS, vector + i * sizeof entry), &entry,
                              sizeof entry)) {
            return exactly ? not_as_known : NULL;
        }
        if (entry.address == 0) {
            continue;
        }
        size_t taken = 0;
        if (!entry_is_sound(&entry) || !pools_are_sound(&entry, i, &taken)) {
            return exactly ? not_as_known : NULL;
        }
        if (!append(arenas, &entry)) {
            return "out of memory";
        }
        arenas->taken_blocks += taken;
    }
    return NULL;
}

#if PY_VERSION_HEX >= 0x030C0000

static const char *
read_all(struct plus_arenas *arenas, uintptr_t table, uintptr_t pool,
         const struct plus_segments *Py_UNUSED(segments))
{
    struct management management;
    struct plus_pool_header header;
    struct entry entry;

    if (!plus_read_memory(table + sizeof(struct table), &management, sizeof management) ||
        !plus_read_memory(plus_pool_header_at(pool), &header, sizeof header) ||
        header.arena >= management.capacity || management.capacity > ENTRIES_LIMIT ||
        !plus_read_memory(management.vector + header.arena * sizeof entry, &entry, sizeof entry) ||
        !has_pool(&entry, pool)) {
        return not_as_known;
    }
    const char *refusal = read_vector(arenas, management.vector, management.capacity, true);
    arenas->larger_blocks = management.larger_blocks;
    return refusal == NULL && arenas->count != management.count ? not_as_known : refusal;
}

#else

/* True if a vector may begin there, judging by the entry of that pool's arena. */
static bool
is_vector(uintptr_t address, uintptr_t pool, uint32_t index)
{
    struct entry entry;
    size_t taken;

    return address >= plus_page_bytes() && address % 16 == 0 &&
           plus_read_memory(address + index * sizeof entry, &entry, sizeof entry) &&
           has_pool(&entry, pool) && entry_is_sound(&entry) &&
           pools_are_sound(&entry, index, &taken);
}

/* The address of the variable that points to the vector, in a data segment; 0 if there is none. */
static uintptr_t
search_variable(const struct plus_segment *segment, uintptr_t pool, uint32_t index)
{
    uintptr_t words[512], at = segment->start & ~(sizeof words - 1), before = 0;

    for (; at < segment->end; at += sizeof words) {
        if (!plus_read_memory(at, words, sizeof words)) {
            continue;
        }
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            bool inside = words[i] >= segment->object_start && words[i] < segment->object_end;
            if (inside || words[i] == before || words[i] >> 47 != 0) {
                continue;
            }
            before = words[i];
            if (is_vector(words[i], pool, index)) {
                return at + i * sizeof words[0];
            }
        }
    }
    return 0;
}

static bool
includes(const struct plus_arenas *arenas, uintptr_t pool)
{
    for (size_t i = 0; i < arenas->count; i++) {
        if (pool >= arenas->list[i].start && pool < arenas->list[i].end) {
            return true;
        }
    }
    return false;
}

static const char *
read_all(struct plus_arenas *arenas, uintptr_t table, uintptr_t pool,
         const struct plus_segments *segments)
{
    /* Found last time; guarded by the GIL.  The vector itself is not kept: it moves when it grows, and its old memory,
     * almost unchanged after its release, would pass for it. */
    static uintptr_t variable;
    uintptr_t vector = 0;
    const struct plus_segment *segment = plus_segments_at(segments, table);
    struct plus_pool_header header;

    if (segment == NULL || !plus_read_memory(plus_pool_header_at(pool), &header, sizeof header)) {
        return not_as_known;
    }
    if (variable == 0 || !plus_read_memory(variable, &vector, sizeof vector) ||
        !is_vector(vector, pool, header.arena)) {
        variable = search_variable(segment, pool, header.arena);
    }
    if (variable == 0 || !plus_read_memory(variable, &vector, sizeof vector)) {
        return not_as_known;
    }
    const char *refusal = read_vector(arenas, vector, ENTRIES_LIMIT, false);
    /* The number of arenas is unknown, but this one must be among them. */
    return refusal == NULL && !includes(arenas, pool) ? not_as_known : refusal;
}

#endif

const char *
plus_arenas_find(struct plus_arenas *arenas, const struct plus_segments *segments)
{
    uintptr_t pool;

    *arenas = (struct plus_arenas){.larger_blocks = -1};
    if (!plus_memory_is_readable()) {
        return unreadable;
    }
    uintptr_t table = find_table(&pool);
    const char *refusal = table == 0 ? no_pymalloc : read_all(arenas, table, pool, segments);
    if (refusal != NULL) {
        plus_arenas_free(arenas);
        return refusal;
    }
    qsort(arenas->list, arenas->count, sizeof *arenas->list, by_address);
    return NULL;
}

void
plus_arenas_free(struct plus_arenas *arenas)
{
    free(arenas->list);
    *arenas = (struct plus_arenas){.larger_blocks = -1};
}

const char *
plus_probe_arenas(void)
{
    const char *refusal = plus_fact_refusal(PLUS_FACT_POOLS);
    struct plus_segments segments = {0};
    struct plus_arenas arenas;
    int status = 0;

    if (refusal != NULL) {
        return refusal;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = plus_segments_read(&segments);
    Py_END_ALLOW_THREADS;
    if (status < 0) {
        PyErr_NoMemory();
        return "out of memory";
    }
    refusal = plus_arenas_find(&arenas, &segments);
    if (refusal == NULL) {
        plus_arenas_free(&arenas);
    }
    plus_segments_free(&segments);
    return refusal;
}
