/* What key_sharing/ needs of C. */
#include "binding.h"

#include "../_base/raise.h"
#include "dict_tally.h"
#include "heap_walk.h"

static PyObject *
class_row(const struct plus_dict_tally *tally)
{
    Py_ssize_t names, room;

    plus_type_shared_names(tally->type, &names, &room);
    return Py_BuildValue("(O(nnnn)(nnnn)(nnnn)(nn))", tally->type, tally->instances, tally->inlined,
                         tally->split, tally->combined, tally->size_bytes, tally->lost,
                         tally->lost_bytes, plus_dict_tally_could_be_bytes(tally), tally->many,
                         tally->general, tally->foreign, tally->put, names, room);
}

/* Those that lost something: the others are most classes of a program. */
static PyObject *
class_rows(const struct plus_dict_walk *walk)
{
    PyObject *rows = PyList_New(0);
    struct plus_dict_tally *each;

    for (size_t at = 0; rows != NULL && (each = plus_record_table_next(&walk->tallies, &at));) {
        if (each->lost > 0) {
            plus_append_row(&rows, class_row(each));
        }
    }
    return rows;
}

static PyObject *
table_rows(const struct plus_dict_walk *walk)
{
    PyObject *rows = PyList_New(0);

    for (Py_ssize_t i = 0; rows != NULL && i < walk->kept; i++) {
        const struct plus_table *table = &walk->largest[i].table;
        plus_append_row(&rows,
                        Py_BuildValue("(Onnnn)", walk->largest[i].op, table->entries,
                                      table->capacity, table->size_bytes, table->could_be_bytes));
    }
    return rows;
}

/* The first allocation behind the walk may start the collector, whose callbacks may free what was only borrowed. */
static void
hold_all(const struct plus_dict_walk *walk, bool release)
{
    const struct plus_dict_tally *each;

    for (size_t at = 0; (each = plus_record_table_next(&walk->tallies, &at)) != NULL;) {
        release ? Py_DECREF(each->type) : Py_INCREF(each->type);
    }
    for (Py_ssize_t i = 0; i < walk->kept; i++) {
        release ? Py_DECREF(walk->largest[i].op) : Py_INCREF(walk->largest[i].op);
    }
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
        PyErr_SetString(PyExc_RuntimeError, refusal);
        return NULL;
    }
    if (plus_dict_walk_run(&walk, worth_bytes, limit) < 0) {
        PyErr_NoMemory();
    }
    else {
        hold_all(&walk, false);
        result = Py_BuildValue("(NNnn)", class_rows(&walk), table_rows(&walk), walk.large,
                               walk.large_saves_bytes);
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
    {"memory_walk_dicts", memory_walk_dicts, METH_VARARGS,
     PyDoc_STR("memory_walk_dicts($module, worth_bytes, limit, /)\n--\n\n"
               "Return (classes, tables, count, bytes) of a walk over the heap.\n\n"
               "classes: of those whose instances have dicts that could do without: (class,\n"
               "(instances, inline, split, combined), (bytes, lost, their bytes, could be),\n"
               "(too many attributes, other keys, foreign names, put there), (names, room)).\n"
               "tables: the `limit` that would save most: (object, entries, capacity, bytes,\n"
               "could be).  count, bytes: of all that would save `worth_bytes`.")},
    {"memory_attributes_of", memory_attributes_of, METH_O,
     PyDoc_STR("memory_attributes_of($module, op, /)\n--\n\n"
               "Return (storage, attributes, bytes) of an instance of a Python class, else None.")},
    {"memory_table_of", memory_table_of, METH_O,
     PyDoc_STR("memory_table_of($module, op, /)\n--\n\n"
               "Return (entries, capacity, bytes, could be) of a dict or set, None if it has no\n"
               "table of its own.")},
    {NULL, NULL, 0, NULL},
};
