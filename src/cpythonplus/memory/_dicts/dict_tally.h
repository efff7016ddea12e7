/* A walk over the heap that adds up, by class, how instances store their attributes, and finds dicts and sets whose
 * tables are far larger than their contents.  With the GIL held. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/record_table.h"
#include "../../_interp/objects/layouts.h"
#include "dict_rows.h"

/* The instances of one class. "Lost" instances take more than they would with shared names and no dict. */
struct plus_dict_tally {
    PyTypeObject *type; /* borrowed */
    Py_ssize_t instances, inlined, split, combined;
    Py_ssize_t attributes; /* the most of one instance, as far as they could be shared */
    Py_ssize_t size_bytes; /* of all instances, as plus_attributes_of() counts */
    Py_ssize_t lost, lost_bytes, lost_bare_bytes; /* bare: without attributes */
    /* The causes for combined instances: too many attributes; keys that are no strings; names that the class does not
     * share; none of these, so that the program has set the dict.  The last two are counted for the first instances
     * only. */
    Py_ssize_t many, many_could_be_bytes, general, foreign, put;
};

/* A dict or a set, borrowed. */
struct plus_large_table {
    PyObject *op;
    struct plus_table table;
};

/* The tables that would save most, in no order. */
struct plus_largest {
    struct plus_large_table *tables;
    Py_ssize_t kept;
};

struct plus_dict_walk {
    struct plus_record_table tallies; /* by class */
    struct plus_dict_rows_table rows; /* dicts with the same keys */
    struct plus_record_table own;     /* dicts that the interpreter made: see look_for_own() */
    struct plus_largest largest;      /* tables larger than their contents */
    struct plus_largest huge;         /* dicts with many keys; could_be_bytes: as a CompactDict */
    Py_ssize_t limit;                 /* for each of the two lists */
    Py_ssize_t worth_bytes;           /* least saving of a table */
    Py_ssize_t large, large_saves_bytes; /* all tables that save so much, and the sum of savings */
};

/* Walks over the heap; 0, or -ENOMEM.  Call plus_dict_walk_free() in either case. */
int
plus_dict_walk_run(struct plus_dict_walk *walk, Py_ssize_t worth_bytes, Py_ssize_t limit);

/* Returns the bytes that the lost instances of a class would take with shared names. */
Py_ssize_t
plus_dict_tally_could_be_bytes(const struct plus_dict_tally *tally);

void
plus_dict_walk_free(struct plus_dict_walk *walk);
