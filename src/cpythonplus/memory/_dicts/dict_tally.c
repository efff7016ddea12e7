#include "dict_tally.h"

#include "../../_heap/heap_walk.h"
#include "../../_interp/objects/sizes.h"

#define COMPARED 64 /* dicts of each class whose names are compared with the class's */

/* ---- by class ------------------------------------------------------------------------------------ */

static void
note_cause(struct plus_dict_tally *tally, const struct plus_attributes *attributes)
{
    struct plus_table table;

    if (attributes->count > PLUS_SHARED_NAMES) {
        tally->many++;
        /* If they were slots of the class. */
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
keep_if_among_largest(struct plus_largest *largest, Py_ssize_t limit, PyObject *op,
                      const struct plus_table *table)
{
    struct plus_large_table *place = NULL;

    if (largest->kept < limit) {
        place = &largest->tables[largest->kept++];
    }
    else {
        for (Py_ssize_t i = 0; i < largest->kept; i++) {
            struct plus_large_table *each = &largest->tables[i];
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

    if (!plus_table_of(op, &table)) {
        return;
    }
    /* A table that would save less than half may just be growing. */
    if (saves(&table) >= walk->worth_bytes && 2 * table.could_be_bytes <= table.size_bytes) {
        walk->large++;
        walk->large_saves_bytes += saves(&table);
        keep_if_among_largest(&walk->largest, walk->limit, op, &table);
    }
    else if (PyDict_CheckExact(op) && table.entries > PLUS_ROW_KEYS) {
        table.could_be_bytes = plus_compacted_bytes(op);
        if (saves(&table) >= walk->worth_bytes) {
            keep_if_among_largest(&walk->huge, walk->limit, op, &table);
        }
    }
}

/* ---- dicts that the program did not make ----------------------------------------------------------- */

struct own_dict {
    PyObject *dict; /* borrowed */
};

/* Takes a dict out of the count, once: several functions can have the same annotations. */
static int
take_out(struct plus_dict_walk *walk, PyObject *dict)
{
    if (dict == NULL || !PyDict_CheckExact(dict) ||
        plus_record_table_find(&walk->own, dict) != NULL) {
        return 0;
    }
    if (plus_record_table_add(&walk->own, dict) == NULL) {
        return -ENOMEM;
    }
    return plus_dict_rows_count(&walk->rows, dict, -1);
}

/* Finds the dicts of names of modules, classes and functions, which the program cannot store in another way. */
static int
look_for_own(struct plus_dict_walk *walk, PyObject *op)
{
    PyObject *found[3] = {NULL};

    if (PyType_Check(op)) {
        PyTypeObject *type = (PyTypeObject *)op;

        found[0] = plus_class_dict(type);
        if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
            found[1] = type->tp_subclasses;
        }
    }
    else if (PyModule_Check(op)) {
        found[0] = PyModule_GetDict(op);
    }
    else if (PyFunction_Check(op)) {
        PyFunctionObject *function = (PyFunctionObject *)op;

        found[0] = function->func_annotations;
        found[1] = function->func_kwdefaults;
        found[2] = function->func_dict;
    }
    for (int i = 0; i < 3; i++) {
        if (take_out(walk, found[i]) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static void
drop_own(const struct plus_dict_walk *walk, struct plus_largest *largest)
{
    Py_ssize_t kept = 0;

    for (Py_ssize_t i = 0; i < largest->kept; i++) {
        if (plus_record_table_find(&walk->own, largest->tables[i].op) == NULL) {
            largest->tables[kept++] = largest->tables[i];
        }
    }
    largest->kept = kept;
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
    if (PyDict_CheckExact(op) && plus_dict_rows_count(&walk->rows, op, 1) < 0) {
        return -ENOMEM;
    }
    if (look_for_own(walk, op) < 0) {
        return -ENOMEM;
    }
    /* The dict of a class is not counted for an instance. */
    if (type->tp_dictoffset == 0 || PyType_Check(op) || !plus_type_shares_keys(type)) {
        return 0;
    }
    struct plus_dict_tally *tally = plus_record_table_get(&walk->tallies, type);
    if (tally == NULL) {
        return -ENOMEM;
    }
    add_instance(tally, op);
    PyObject *dict = plus_instance_dict(op);
    return dict != NULL && PyDict_CheckExact(dict) ? plus_dict_rows_count(&walk->rows, dict, -1)
                                                   : 0;
}

int
plus_dict_walk_run(struct plus_dict_walk *walk, Py_ssize_t worth_bytes, Py_ssize_t limit)
{
    struct plus_heap_visitor visitor = {.object = look_at, .arg = walk};

    *walk = (struct plus_dict_walk){.limit = limit, .worth_bytes = worth_bytes};
    walk->tallies = PLUS_RECORD_TABLE(struct plus_dict_tally);
    walk->rows.rows = PLUS_RECORD_TABLE(struct plus_dict_rows);
    walk->own = PLUS_RECORD_TABLE(struct own_dict);
    walk->largest.tables = calloc((size_t)limit + 1, sizeof *walk->largest.tables);
    walk->huge.tables = calloc((size_t)limit + 1, sizeof *walk->huge.tables);
    if (walk->largest.tables == NULL || walk->huge.tables == NULL) {
        return -ENOMEM;
    }
    int rc = plus_heap_walk(&visitor, NULL);
    drop_own(walk, &walk->huge);
    plus_dict_rows_finish(&walk->rows);
    return rc;
}

void
plus_dict_walk_free(struct plus_dict_walk *walk)
{
    plus_record_table_clear(&walk->tallies);
    plus_record_table_clear(&walk->rows.rows);
    plus_record_table_clear(&walk->own);
    free(walk->largest.tables);
    free(walk->huge.tables);
}
