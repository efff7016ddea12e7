/* A mark: notes of one look at the owners of the heap, for a later look to compare with.
 *
 * If an object was freed and another of the same class took its address, it looks as if it had stayed.  That is rare
 * among objects that keep much.  Used in a copy of the process (heap_copy.h); makes no Python object. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/record_table.h"
#include "../../_heap/reach.h"

struct plus_marked {
    uintptr_t object, type; /* type 0: the sum of objects that share a row */
    uint64_t reached, kept, table;
    int64_t length;
    uint64_t objects;
};

struct plus_marked_type {
    uintptr_t type;
    uint64_t objects, bytes;
};

struct plus_mark {
    uint64_t magic;
    uint64_t nodes, types;
    uint64_t total_objects, total_bytes;
    /* followed by `nodes` times struct plus_marked, by address; then `types` times struct plus_marked_type, by
     * address */
};

struct plus_class_sum {
    PyTypeObject *type;
    uint64_t objects, bytes;
};

/* Returns the number of entries of a container; -1 for any other object. */
int64_t
plus_entries_of(PyObject *op);

/* Returns the bytes of the table of a dict, a set or a list; 0 for any other object. */
uint64_t
plus_table_bytes(PyObject *op);

/* Fills a table of struct plus_class_sum with the nodes by class.  Objects that count with another one are left out.
 * 0, or -ENOMEM. */
int
plus_class_sums(const struct plus_reach *owners, struct plus_record_table *sums);

/* Returns the mark of a look, in a block from malloc; NULL: no memory. */
void *
plus_owners_mark(const struct plus_reach *owners, size_t *bytes);

/* Returns the mark in the block; NULL if it is incomplete. */
const struct plus_mark *
plus_mark_read(const void *before, size_t bytes);

/* Returns the note of an address; NULL: there is none. */
const struct plus_marked *
plus_mark_find(const struct plus_mark *mark, uintptr_t key);

/* Returns the note of an object; NULL: it was not there, or kept little. */
const struct plus_marked *
plus_mark_before(const struct plus_mark *mark, PyObject *op);

/* Returns the note of a class; NULL: there is none. */
const struct plus_marked_type *
plus_mark_type(const struct plus_mark *mark, const PyTypeObject *type);

/* Returns the bytes by which the table of a node in the mark has grown beyond the growth of its entries.  A table is
 * doubled at once, which is no leak. */
uint64_t
plus_table_excess(const struct plus_reach *owners, const struct plus_mark *mark, uint32_t node);

/* Returns a new array: for each node, the sum of plus_table_excess() over all that is reached through it.  NULL with
 * `*status` 0: no table has grown so, or there is no mark; NULL with -ENOMEM: no memory. */
uint64_t *
plus_tables_find(const struct plus_reach *owners, const struct plus_mark *mark, int *status);
