/* The binding of dicts. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../_base/rows.h"
#include "../../_heap/heap_walk.h"
#include "dict_tally.h"

static PyObject *
class_row(const struct plus_dict_tally *tally)
{
    Py_ssize_t names, room;

    plus_type_shared_names(tally->type, &names, &room);
    return Py_BuildValue("(O(nnnn)(nnnnn)(nnnn)(nn))", tally->type, tally->instances,
                         tally->inlined, tally->split, tally->combined, tally->size_bytes,
                         tally->lost, tally->lost_bytes, plus_dict_tally_could_be_bytes(tally),
                         tally->instances * plus_record_bytes(tally->attributes), tally->many,
                         tally->general, tally->foreign, tally->put, names, room);
}

/* Returns the bytes that a class's instances would save as Records: those without slots but with a dict or values. */
static Py_ssize_t
record_saves_bytes(const struct plus_dict_tally *tally)
{
    return tally->size_bytes - tally->instances * plus_record_bytes(tally->attributes);
}

/* Returns rows for the classes that lost something or would save something; most classes do neither. */
static PyObject *
class_rows(const struct plus_dict_walk *walk)
{
    PyObject *rows = PyList_New(0);
    struct plus_dict_tally *each;

    for (size_t at = 0; rows != NULL && (each = plus_record_table_next(&walk->tallies, &at));) {
        if (each->lost > 0 || record_saves_bytes(each) >= walk->worth_bytes) {
            plus_append_row(&rows, class_row(each));
        }
    }
    return rows;
}

static PyObject *
table_rows(const struct plus_largest *largest)
{
    PyObject *rows = PyList_New(0);

    for (Py_ssize_t i = 0; rows != NULL && i < largest->kept; i++) {
        const struct plus_table *table = &largest->tables[i].table;
        plus_append_row(&rows,
                        Py_BuildValue("(Onnnn)", largest->tables[i].op, table->entries,
                                      table->capacity, table->size_bytes, table->could_be_bytes));
    }
    return rows;
}

/* Returns the least bytes that dicts with the same keys could take. */
static Py_ssize_t
least_bytes(const struct plus_dict_rows *rows)
{
    return rows->count * plus_record_bytes(rows->keys);
}

static size_t
samples_of(const struct plus_dict_rows *rows)
{
    return rows->met < PLUS_ROW_SAMPLES ? rows->met : PLUS_ROW_SAMPLES;
}

static PyObject *
samples_list(const struct plus_dict_rows *rows)
{
    PyObject *samples = PyList_New((Py_ssize_t)samples_of(rows));

    for (size_t i = 0; samples != NULL && i < samples_of(rows); i++) {
        PyList_SET_ITEM(samples, (Py_ssize_t)i, Py_NewRef(rows->samples[i]));
    }
    return samples;
}

static PyObject *
rows_rows(const struct plus_dict_walk *walk)
{
    PyObject *result = PyList_New(0);
    const struct plus_dict_rows *each;

    for (size_t at = 0;
         result != NULL && (each = plus_record_table_next(&walk->rows.rows, &at)) != NULL;) {
        if (each->count > 0 && each->size_bytes - least_bytes(each) >= walk->worth_bytes) {
            plus_append_row(&result,
                            Py_BuildValue("(nnnnnnN)", each->keys, each->count, each->size_bytes,
                                          each->count * plus_shared_dict_bytes(each->keys),
                                          each->count * plus_record_bytes(each->keys),
                                          each->count * plus_compact_dict_bytes(each->keys),
                                          samples_list(each)));
        }
    }
    return result;
}

/* Small dicts in no group: (count, bytes, bytes as CompactDicts, samples). */
static PyObject *
small_row(const struct plus_dict_rows_table *table)
{
    const struct plus_dict_rows *small = &table->small;
    Py_ssize_t count = small->count > 0 ? small->count : 0;

    return Py_BuildValue("(nnnN)", count, small->size_bytes,
                         count * plus_compact_dict_bytes(count > 0 ? table->small_keys / count : 0),
                         samples_list(small));
}

static void
hold_samples(const struct plus_dict_rows *rows, bool release)
{
    for (size_t i = 0; i < samples_of(rows); i++) {
        release ? Py_DECREF(rows->samples[i]) : Py_INCREF(rows->samples[i]);
    }
}

static void
hold_largest(const struct plus_largest *largest, bool release)
{
    for (Py_ssize_t i = 0; i < largest->kept; i++) {
        release ? Py_DECREF(largest->tables[i].op) : Py_INCREF(largest->tables[i].op);
    }
}

/* The first allocation after the walk may start the collector, whose callbacks may free borrowed objects. */
static void
hold_all(const struct plus_dict_walk *walk, bool release)
{
    const struct plus_dict_tally *each;
    const struct plus_dict_rows *rows;

    for (size_t at = 0; (each = plus_record_table_next(&walk->tallies, &at)) != NULL;) {
        release ? Py_DECREF(each->type) : Py_INCREF(each->type);
    }
    for (size_t at = 0; (rows = plus_record_table_next(&walk->rows.rows, &at)) != NULL;) {
        hold_samples(rows, release);
    }
    hold_samples(&walk->rows.small, release);
    hold_largest(&walk->largest, release);
    hold_largest(&walk->huge, release);
}

static PyObject *
memory_walk_dicts(PyObject *module, PyObject *args)
{
    struct plus_dict_walk walk;
    Py_ssize_t worth_bytes, limit;
    PyObject *result = NULL;

    if (!PyArg_ParseTuple(args, "nn:memory_walk_dicts", &worth_bytes, &limit)) {
        return NULL;
    }
    if (limit < 0 || limit > 100000) {
        PyErr_SetString(PyExc_ValueError, "limit must be 0 to 100000");
        return NULL;
    }
    if (plus_heap_walk_raises()) {
        return NULL;
    }
    const char *refusal = plus_fact_refusal(PLUS_FACT_INLINE_VALUES);

    if (refusal != NULL) {
        return plus_raise_unsupported(refusal);
    }
    if (plus_dict_walk_run(&walk, worth_bytes, limit) < 0) {
        PyErr_NoMemory();
    }
    else {
        hold_all(&walk, false);
        result = Py_BuildValue("(NNnnNNN)", class_rows(&walk), table_rows(&walk.largest),
                               walk.large, walk.large_saves_bytes, rows_rows(&walk),
                               small_row(&walk.rows), table_rows(&walk.huge));
        hold_all(&walk, true);
    }
    plus_dict_walk_free(&walk);
    return result;
}

static PyObject *
memory_attributes_of(PyObject *module, PyObject *op)
{
    static const char *const storages[] = {"none", "inline", "split", "combined"};
    struct plus_attributes attributes;

    if (plus_refuses_free_threaded()) {
        return NULL;
    }
    if (plus_fact_refusal(PLUS_FACT_INLINE_VALUES) != NULL || !plus_type_shares_keys(Py_TYPE(op))) {
        Py_RETURN_NONE;
    }
    plus_attributes_of(op, &attributes);
    return Py_BuildValue("(snn)", storages[attributes.storage], attributes.count,
                         attributes.size_bytes);
}

static PyObject *
memory_table_of(PyObject *module, PyObject *op)
{
    struct plus_table table;

    if (plus_refuses_free_threaded()) {
        return NULL;
    }
    if (plus_fact_refusal(PLUS_FACT_DICT_KEYS) != NULL || !plus_table_of(op, &table)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(nnnn)", table.entries, table.capacity, table.size_bytes,
                         table.could_be_bytes);
}

PyMethodDef plus_memory_dicts_methods[] = {
    PLUS_METHOD(
        "memory_walk_dicts", memory_walk_dicts, METH_VARARGS, "$module, worth_bytes, limit, /",
        "Return (classes, tables, count, bytes, rows, small, huge) of a walk over the heap.\n\n"
        "classes: of those whose instances have dicts that could do without, or would save\n"
        "`worth_bytes` as Records: (class, (instances, inline, split, combined), (bytes, lost,\n"
        "their bytes, could be, bytes as Records), (too many attributes, other keys, foreign\n"
        "names, put there), (names, room)).\n"
        "tables: the `limit` that would save most: (object, entries, capacity, bytes,\n"
        "could be).  count, bytes: of all that would save `worth_bytes`.\n"
        "rows: dicts with the same keys: (keys, dicts, bytes, with shared keys, as Records, as\n"
        "CompactDicts, samples).  small: all other small ones: (dicts, bytes, as CompactDicts,\n"
        "samples).  huge: as tables, could be: as CompactDicts."),
    PLUS_METHOD("memory_attributes_of", memory_attributes_of, METH_O, "$module, op, /",
                "Return (storage, attributes, bytes) of an instance of a Python class, else None."),
    PLUS_METHOD("memory_table_of", memory_table_of, METH_O, "$module, op, /",
                "Return (entries, capacity, bytes, could be) of a dict or set, None if it has no\n"
                "table of its own."),
    {NULL, NULL, 0, NULL},
};
