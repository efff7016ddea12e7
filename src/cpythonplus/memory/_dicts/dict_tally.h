/* A walk over the heap that adds up how instances keep their attributes, by class, and finds dicts and sets whose
 * tables are far larger than what they hold.  With the GIL held. */
#ifndef PLUS_MEMORY_DICT_TALLY_H
#define PLUS_MEMORY_DICT_TALLY_H

#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/layouts.h"
#include "dict_rows.h"

/* The instances of one class.  "Lost" are those that take more than they would with shared names and no dict. */
struct plus_dict_tally {
    PyTypeObject *type; /* borrowed */
    Py_ssize_t instances, inlined, split, combined;
    Py_ssize_t attributes; /* the most that one instance has, as far as they could be shared */
    Py_ssize_t size_bytes; /* of all instances, with what attributes_of counts */
    Py_ssize_t lost, lost_bytes, lost_bare_bytes; /* bare: without attributes */
    /* Why, of the combined ones: too many attributes; keys that are no strings; names that the class does not share;
     * none of these, so that the dict must have been put there.  The last two of the first instances only. */
    Py_ssize_t many, many_could_be_bytes, general, foreign, put;
};

/* A dict or a set, borrowed. */
struct plus_large_table {
    PyObject *op;
    struct plus_table table;
};

/* Those that would save most, in no order. */
struct plus_largest {
    struct plus_large_table *tables;
    Py_ssize_t kept;
};

struct plus_dict_walk {
    struct plus_record_table tallies;    /* by class */
    struct plus_dict_rows_table rows;    /* dicts with the same keys */
    struct plus_record_table own;        /* dicts that the interpreter made: see look_for_own */
    struct plus_largest largest;         /* tables larger than what is in them */
    struct plus_largest huge;            /* dicts with many keys; could be: as a CompactDict */
    Py_ssize_t limit;                    /* of each of both */
    Py_ssize_t worth_bytes;              /* what a table must save to be among them */
    Py_ssize_t large, large_saves_bytes; /* all that are worth it, and what they would save */
};

/* Walks; 0, or -ENOMEM.  What it took is freed by plus_dict_walk_free in either case. */
int
plus_dict_walk_run(struct plus_dict_walk *walk, Py_ssize_t worth_bytes, Py_ssize_t limit);

/* What the lost ones of a class would take with shared names. */
Py_ssize_t
plus_dict_tally_could_be_bytes(const struct plus_dict_tally *tally);

void
plus_dict_walk_free(struct plus_dict_walk *walk);

#endif
