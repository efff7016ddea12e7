/* The binding of a census: the walk over the heap, and then its sums as Python objects. */
#include "../binding.h"

#include "../../_base/methods.h"
#include "../../_base/process/clock.h"
#include "../../_base/rows.h"
#include "../../_heap/heap_walk.h"
#include "../../_heap/references.h"
#include "../../_interp/objects/gc_objects.h"
#include "../../_interp/objects/layouts.h"
#include "../../_interp/objects/world.h"
#include "referrers.h"
#include "tally.h"

static int
count(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    (void)parent;
    return plus_tally_add(arg, op, origin == PLUS_HEAP_FROZEN);
}

static PyObject *
class_rows(const struct plus_tally *tally)
{
    PyObject *rows = PyList_New(0);
    const struct plus_class_tally *each;

    for (size_t at = 0; rows != NULL && (each = plus_record_table_next(&tally->classes, &at));) {
        plus_append_row(&rows,
                        Py_BuildValue("(O(nn)(nn)(nn)(nn)n)", each->type, each->self.objects,
                                      each->self.bytes, each->owned.objects, each->owned.bytes,
                                      each->dicts.objects, each->dicts.bytes, each->itself.objects,
                                      each->itself.bytes, each->own_dict_bytes));
    }
    return rows;
}

static PyObject *
place_rows(const struct plus_record_table *table)
{
    PyObject *rows = PyList_New(0);
    const struct plus_place_tally *each;

    for (size_t at = 0; rows != NULL && (each = plus_record_table_next(table, &at));) {
        plus_append_row(&rows,
                        Py_BuildValue("(O(nn)(nn)On)", each->place, each->self.objects,
                                      each->self.bytes, each->dicts.objects, each->dicts.bytes,
                                      each->is_module ? Py_True : Py_False, each->own_bytes));
    }
    return rows;
}

static PyObject *
size_rows(const struct plus_tally *tally)
{
    PyObject *rows = PyList_New(0);

    for (unsigned i = 0; rows != NULL && i < PLUS_SIZE_CLASSES; i++) {
        const struct plus_sum *sum = &tally->sizes[i];
        if (sum->objects > 0) {
            plus_append_row(
                &rows, Py_BuildValue("(nnn)", plus_size_class_limit(i), sum->objects, sum->bytes));
        }
    }
    return rows;
}

static PyObject *
census_of(const struct plus_tally *tally, uint64_t pause_ns, size_t extra_bytes)
{
    bool keys = plus_fact_refusal(PLUS_FACT_DICT_KEYS) == NULL;
    bool values = plus_fact_refusal(PLUS_FACT_INLINE_VALUES) == NULL;

    return Py_BuildValue("(nnLnNNNNOO)", tally->frozen, tally->immortal, (long long)pause_ns,
                         (Py_ssize_t)extra_bytes, class_rows(tally), place_rows(&tally->places),
                         place_rows(&tally->files), size_rows(tally), keys ? Py_True : Py_False,
                         values ? Py_True : Py_False);
}

struct counting {
    struct plus_tally *tally;
    size_t extra_bytes;
};

/* Holds what it has counted, before another thread may free it. */
static int
count_all(void *arg)
{
    struct counting *it = arg;
    const struct plus_heap_visitor visitor = {count, NULL, it->tally};
    int status = plus_heap_walk(&visitor, &it->extra_bytes);

    if (status == 0) {
        plus_tally_hold(it->tally);
    }
    return status;
}

static PyObject *
memory_census(PyObject *module, PyObject *unused)
{
    struct plus_tally tally;
    struct counting counting = {&tally, 0};

    if (plus_heap_walk_raises()) {
        return NULL;
    }
    uint64_t start = plus_now_ns();
    int status = plus_tally_init(&tally);
    if (status == 0) {
        status = plus_gc_objects_begin();
    }
    if (status == 0) {
        status = plus_world_stopped(count_all, &counting);
        plus_gc_objects_end();
    }
    if (status < 0) {
        plus_tally_free(&tally, false);
        return PyErr_NoMemory();
    }
    uint64_t pause_ns = plus_now_ns() - start;
    PyObject *result = census_of(&tally, pause_ns, counting.extra_bytes + plus_tally_bytes(&tally));
    plus_tally_free(&tally, true);
    return result;
}

static PyObject *
memory_object_parts(PyObject *module, PyObject *op)
{
    struct plus_measuring how = plus_measuring_of(Py_TYPE(op));
    struct plus_parts parts = plus_parts_of(&how, op);

    return Py_BuildValue("(nnn)", parts.object, parts.table, parts.values);
}

static PyObject *
memory_referrers_of(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "memory_referrers_of takes a class");
        return NULL;
    }
    return plus_heap_walk_raises() ? NULL : plus_referrers_rows((PyTypeObject *)type);
}

static PyObject *
memory_root_path(PyObject *module, PyObject *args)
{
    PyObject *target, *caller, *own;
    int any_instance;

    if (!PyArg_ParseTuple(args, "OpOO:memory_root_path", &target, &any_instance, &caller, &own)) {
        return NULL;
    }
    if (own != Py_None && !PyUnicode_CheckExact(own)) {
        PyErr_SetString(PyExc_TypeError, "own must be a str or None");
        return NULL;
    }
    return plus_heap_walk_raises() ? NULL : plus_root_path(target, any_instance, caller, own);
}

static PyObject *
memory_root_paths(PyObject *module, PyObject *args)
{
    PyObject *targets, *own;
    int seconds;

    if (!PyArg_ParseTuple(args, "O!Ui:memory_root_paths", &PyTuple_Type, &targets, &own,
                          &seconds)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(targets) > PLUS_ROOT_PATHS_MAX) {
        PyErr_Format(PyExc_ValueError, "at most %d objects", PLUS_ROOT_PATHS_MAX);
        return NULL;
    }
    return plus_heap_walk_raises() ? NULL : plus_root_paths(targets, own, seconds);
}

static PyObject *
memory_reference_label(PyObject *module, PyObject *args)
{
    PyObject *from, *to;

    if (!PyArg_ParseTuple(args, "OO:memory_reference_label", &from, &to) ||
        plus_heap_walk_raises()) {
        return NULL;
    }
    return plus_reference_label(from, to);
}

PyMethodDef plus_memory_census_methods[] = {
    PLUS_METHOD(
        "memory_census", memory_census, METH_NOARGS, "$module, /",
        "Count every object; return (frozen, immortal, pause in ns, bytes that it took, classes,\n"
        "namespaces, files, sizes of blocks, whether key tables and inline values were counted).\n"
        "UnsupportedPlatform where it cannot be done."),
    PLUS_METHOD(
        "memory_object_parts", memory_object_parts, METH_O, "$module, op, /",
        "Return the bytes of the blocks of memory that the object consists of: the object,\n"
        "a table or its items, values or a copy in UTF-8; 0 for what it does not have."),
    PLUS_METHOD("memory_referrers_of", memory_referrers_of, METH_O, "$module, type, /",
                "Return (kind, owner, name, references) for each way in which others refer to its\n"
                "instances.  UnsupportedPlatform where it cannot be done."),
    PLUS_METHOD(
        "memory_root_path", memory_root_path, METH_VARARGS,
        "$module, target, any_instance, caller, own, /",
        "Return (root, name, objects): the shortest path to an object, or an instance, from a\n"
        "module or a variable; not of the code `caller`, nor of files that begin with `own`.\n"
        "LookupError if there is no instance; UnsupportedPlatform where it cannot be done."),
    PLUS_METHOD(
        "memory_root_paths", memory_root_paths, METH_VARARGS, "$module, targets, own, seconds, /",
        "Return a list with the shortest path to each of at most 16 objects, or None,\n"
        "and for how many ns the GIL was held at most; looked for in a copy of the process,\n"
        "for so many seconds at most.  UnsupportedPlatform, RuntimeError, OSError."),
    PLUS_METHOD(
        "memory_reference_label", memory_reference_label, METH_VARARGS,
        "$module, source, target, /",
        "Return how one object refers to another: (\"attribute\", name), (\"key\", object),\n"
        "(\"index\", number), (\"dict\", None), or (\"\", None) if that is not to be seen."),
    {NULL, NULL, 0, NULL},
};
