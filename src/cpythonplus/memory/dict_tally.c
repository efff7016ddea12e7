#include "dict_tally.h"

#include <errno.h>
#include <stdlib.h>

#include "../_interp/sizes.h"
#include "heap_walk.h"

#define COMPARED 64 /* dicts of each class whose names are compared with the class's */

/* ---- by class ------------------------------------------------------------------------------------ */

static void
note_cause(struct plus_dict_tally *tally, const struct plus_attributes *attributes)
{
    struct plus_table table;

    if (attributes->count > PLUS_SHARED_NAMES) {
        tally->many++;
        /* As slots of the class. */
        tally->many_could_be_bytes += attributes->count * (Py_ssize_t)sizeof(PyObject *);
    }
    else if (plus_table_of(attributes->dict, &table) && table.general) {
        tally->general++;
    }
    else if (tally->foreign + tally->put < COMPARED) {
        if (plus_dict_has_shared_names(attributes->dict, tally->type)) {
            tally->put++;
        }
        else {
            tally->foreign++;
        }
    }
}

static void
add_instance(struct plus_dict_tally *tally, PyObject *op)
{
    struct plus_attributes attributes;
    Py_ssize_t bare = plus_object_bytes(op);

    plus_attributes_of(op, &attributes);
    Py_ssize_t size = bare + attributes.size_bytes;
    tally->instances++;
    tally->size_bytes += size;
    tally->inlined += attributes.storage == PLUS_STORAGE_INLINE;
    tally->split += attributes.storage == PLUS_STORAGE_SPLIT;
    tally->combined += attributes.storage == PLUS_STORAGE_COMBINED;
    if (attributes.count <= PLUS_SHARED_NAMES && attributes.count > tally->attributes) {
        tally->attributes = attributes.count;
    }
    if (attributes.storage == PLUS_STORAGE_COMBINED ||
        (attributes.storage == PLUS_STORAGE_SPLIT && plus_has_inline_values(tally->type))) {
        tally->lost++;
        tally->lost_bytes += size;
        tally->lost_bare_bytes += bare;
    }
    if (attributes.storage == PLUS_STORAGE_COMBINED) {
        note_cause(tally, &attributes);
    }
}

Py_ssize_t
plus_dict_tally_could_be_bytes(const struct plus_dict_tally *tally)
{
    Py_ssize_t shared = plus_attributes_shared_bytes(tally->type, tally->attributes);

    return tally->lost_bare_bytes + tally->many_could_be_bytes +
           (tally->lost - tally->many) * shared;
}

/* ---- large tables -------------------------------------------------------------------------------- */

static Py_ssize_t
saves(const struct plus_table *table)
{
    return table->size_bytes - table->could_be_bytes;
}

static void
keep_if_among_largest(struct plus_dict_walk *walk, PyObject *op, const struct plus_table *table)
{
    struct plus_large_table *place = NULL;

    if (walk->kept < walk->limit) {
        place = &walk->largest[walk->kept++];
    }
    else {
        for (Py_ssize_t i = 0; i < walk->kept; i++) {
            struct plus_large_table *each = &walk->largest[i];
            if (saves(&each->table) < saves(place == NULL ? table : &place->table)) {
                place = each;
            }
        }
    }
    if (place != NULL) {
        *place = (struct plus_large_table){op, *table};
    }
}

static void
look_at_table(struct plus_dict_walk *walk, PyObject *op)
{
    struct plus_table table;

    /* A table that would save less than half is how they grow. */
    if (plus_table_of(op, &table) && saves(&table) >= walk->worth_bytes &&
        2 * table.could_be_bytes <= table.size_bytes) {
        walk->large++;
        walk->large_saves_bytes += saves(&table);
        keep_if_among_largest(walk, op, &table);
    }
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static int
look_at(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct plus_dict_walk *walk = arg;
    PyTypeObject *type = Py_TYPE(op);

    if (PyDict_Check(op) || PySet_Check(op)) {
        look_at_table(walk, op);
    }
    /* What a class has in its dict is no instance's business. */
    if (type->tp_dictoffset == 0 || PyType_Check(op) || !plus_type_shares_keys(type)) {
        return 0;
    }
    struct plus_dict_tally *tally = plus_record_table_get(&walk->tallies, type);
    if (tally == NULL) {
        return -ENOMEM;
    }
    add_instance(tally, op);
    return 0;
}

int
plus_dict_walk_run(struct plus_dict_walk *walk, Py_ssize_t worth_bytes, Py_ssize_t limit)
{
    struct plus_heap_visitor visitor = {.object = look_at, .arg = walk};

    *walk = (struct plus_dict_walk){.limit = limit, .worth_bytes = worth_bytes};
    walk->tallies = PLUS_RECORD_TABLE(struct plus_dict_tally);
    walk->largest = calloc((size_t)limit + 1, sizeof *walk->largest);
    return walk->largest == NULL ? -ENOMEM : plus_heap_walk(&visitor, NULL);
}

void
plus_dict_walk_free(struct plus_dict_walk *walk)
{
    plus_record_table_clear(&walk->tallies);
    free(walk->largest);
}
