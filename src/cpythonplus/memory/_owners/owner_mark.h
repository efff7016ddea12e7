/* What is noted of a look at the owners of the heap, for a later one to be compared with.
 *
 * What was freed, and something of the same class put in its place, looks as if it had stayed; that is rare among what
 * keeps much.  In a copy of the process (heap_copy.h); makes no object. */
#ifndef PLUS_MEMORY_OWNER_MARK_H
#define PLUS_MEMORY_OWNER_MARK_H

#include "../../_base/compat.h"
#include "../../_base/memory/record_table.h"
#include "../../_heap/reach.h"

struct plus_marked {
    uintptr_t object, type; /* type 0: told together */
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
    /* `nodes` times struct plus_marked, by address; `types` times struct plus_marked_type, by address */
};

struct plus_class_sum {
    PyTypeObject *type;
    uint64_t objects, bytes;
};

/* Entries of a container; -1: it is none. */
int64_t
plus_entries_of(PyObject *op);

/* Bytes of the table of a dict, a set or a list; 0: it is none. */
uint64_t
plus_table_bytes(PyObject *op);

/* Fills a table of struct plus_class_sum: by class, what is a node; what counts with another is of no interest.  0, or -ENOMEM. */
int
plus_class_sums(const struct plus_reach *owners, struct plus_record_table *sums);

/* What is told of a look to a later one: a block from malloc; NULL: no memory. */
void *
plus_owners_mark(const struct plus_reach *owners, size_t *bytes);

/* A mark that is whole, or NULL. */
const struct plus_mark *
plus_mark_read(const void *before, size_t bytes);

/* What was noted under an address; NULL: nothing. */
const struct plus_marked *
plus_mark_find(const struct plus_mark *mark, uintptr_t key);

/* What was noted of an object; NULL: it was not there, or kept little. */
const struct plus_marked *
plus_mark_before(const struct plus_mark *mark, PyObject *op);

/* What was noted of a class; NULL: nothing. */
const struct plus_marked_type *
plus_mark_type(const struct plus_mark *mark, const PyTypeObject *type);

/* By how many bytes the table of a node that is noted in the mark has been made larger than what has come into it since:
 * a table is doubled at once, and is no leak. */
uint64_t
plus_table_excess(const struct plus_reach *owners, const struct plus_mark *mark, uint32_t node);

/* A new array: of each node by how much too much is reached through it; NULL with `*status` 0: nowhere, or there is no mark;
 * with -ENOMEM: no memory. */
uint64_t *
plus_tables_find(const struct plus_reach *owners, const struct plus_mark *mark, int *status);

#endif
