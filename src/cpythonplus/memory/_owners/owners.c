/* Puts the answer together: the owners (owner_search.c), their rows (owner_rows.c, owner_path.c), and classes
 * (owner_classes.c). owner_mark.c makes the mark.
 *
 * Nothing is freed: the copy of the process that runs this ends afterwards. */
#include "owners.h"

#include "../../_base/rows.h"

#include "../binding.h"
#include "owner_rows.h"

static PyObject *
rows_of(const struct plus_owners_search *it, const struct plus_owner_rows *rows)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; i < rows->count && list != NULL; i++) {
        plus_append_row(&list, plus_owner_as_dict(it, &rows->all[i]));
    }
    return list;
}

PyObject *
plus_owners_report(const struct plus_reach *owners, const void *before, size_t before_bytes,
                   uint64_t least, const PyTypeObject *asked)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct plus_owners_search it = {
        .owners = owners, .mark = plus_mark_read(before, before_bytes), .least = (int64_t)least};

    if (plus_owners_find(&it) < 0) {
        return PyErr_NoMemory();
    }
    PyObject *rows = rows_of(&it, &it.rows), *resized = rows_of(&it, &it.resized);
    PyObject *together[PLUS_TOGETHER_KINDS] = {NULL}, *result = NULL;

    PyObject *classes =
        rows == NULL || resized == NULL ? NULL : plus_class_rows(owners, it.mark, least);
    PyObject *one = classes == NULL ? NULL : plus_class_row(owners, asked);
    bool made = one != NULL;

    for (int kind = 0; kind < PLUS_TOGETHER_KINDS && made; kind++) {
        together[kind] = plus_together_rows(&it, (enum plus_together_kind)kind);
        made = together[kind] != NULL;
    }
    if (made) {
        result = Py_BuildValue(
            "{sKsKsKsKsKsKsOsOsOsOsOsOsOsO}", "objects", (unsigned long long)graph->total_objects,
            "bytes", (unsigned long long)graph->total_bytes, "large_bytes",
            (unsigned long long)graph->large_bytes, "small_bytes",
            (unsigned long long)graph->small_bytes, "objects_before",
            (unsigned long long)(it.mark != NULL ? it.mark->total_objects : 0), "bytes_before",
            (unsigned long long)(it.mark != NULL ? it.mark->total_bytes : 0), "owners", rows,
            "resized", resized, "classes", classes, "frames", together[PLUS_TOGETHER_FRAMES],
            "unreached", together[PLUS_TOGETHER_UNREACHED], "held", together[PLUS_TOGETHER_HELD],
            "left", together[PLUS_TOGETHER_LEFT], "asked", one);
    }
    Py_XDECREF(rows);
    Py_XDECREF(resized);
    Py_XDECREF(classes);
    Py_XDECREF(one);
    for (int kind = 0; kind < PLUS_TOGETHER_KINDS; kind++) {
        Py_XDECREF(together[kind]);
    }
    return result;
}
