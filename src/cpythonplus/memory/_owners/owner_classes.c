#include "owner_rows.h"

#include "../../_base/rows.h"

#include "../../_base/memory/copy_memory.h"
#include "../binding.h"
#include "owner_path.h"
#include "together.h"

#define TYPES 40
#define WAYS 8
#define FEW 10 /* more objects of a class of C code are told, however small they are */

struct group {
    const void *key;
    uint32_t example;
    uint64_t objects;
};

struct class_row {
    PyTypeObject *type;
    uint64_t objects, bytes, objects_before, bytes_before;
    bool is_native;
    struct plus_record_table groups;
};

static int64_t
rank_of(const struct class_row *row)
{
    return (int64_t)(row->bytes - row->bytes_before);
}

static void
choose_class(struct class_row *rows, size_t *count, const struct class_row *row)
{
    size_t at = *count < TYPES ? (*count)++ : TYPES;

    if (at == TYPES && rank_of(row) <= rank_of(&rows[TYPES - 1])) {
        return;
    }
    at = at == TYPES ? TYPES - 1 : at;
    for (; at > 0 && rank_of(&rows[at - 1]) < rank_of(row); at--) {
        rows[at] = rows[at - 1];
    }
    rows[at] = *row;
}

/* Paths that are spelled alike share one group.  Garbage cycles, variables of a function, and objects that C code
 * holds have no names of their own. */
static int
count_in(const struct plus_reach *owners, struct class_row *row, uint32_t node)
{
    uint32_t anchor = owners->anchor[node];
    const void *key = anchor == PLUS_GARBAGE ? NULL : plus_together_key(owners, anchor);
    struct group *group =
        plus_record_table_get(&row->groups, key != NULL ? key : &owners->anchor[anchor]);

    if (group == NULL) {
        return -ENOMEM;
    }
    group->example = group->objects == 0 ? node : group->example;
    group->objects++;
    return 0;
}

static PyObject *
class_as_dict(const struct plus_reach *owners, struct class_row *row)
{
    PyObject *groups = PyList_New(0), *name = plus_type_name(row->type), *result = NULL;

    for (int told = 0; told < WAYS && groups != NULL; told++) {
        struct group *most = NULL, *group;
        for (size_t at = 0; (group = plus_record_table_next(&row->groups, &at)) != NULL;) {
            most = most == NULL || group->objects > most->objects ? group : most;
        }
        if (most == NULL || most->objects == 0) {
            break;
        }
        PyObject *steps = plus_owner_path(owners, most->example);
        plus_append_row(&groups, steps == NULL ? NULL
                                               : Py_BuildValue("{sKsN}", "objects",
                                                               (unsigned long long)most->objects,
                                                               "steps", steps));
        most->objects = 0;
    }
    if (groups != NULL && name != NULL) {
        result = Py_BuildValue(
            "{sOsOsKsKsKsKsO}", "type", name, "is_native", row->is_native ? Py_True : Py_False,
            "objects", (unsigned long long)row->objects, "objects_before",
            (unsigned long long)row->objects_before, "bytes", (unsigned long long)row->bytes,
            "bytes_before", (unsigned long long)row->bytes_before, "groups", groups);
    }
    Py_XDECREF(groups);
    Py_XDECREF(name);
    return result;
}

/* Returns the TYPES classes that have grown most, the largest growth first. */
PyObject *
plus_class_rows(const struct plus_reach *owners, const struct plus_mark *mark, uint64_t least)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct plus_record_table sums = PLUS_RECORD_TABLE(struct plus_class_sum);
    struct class_row *rows = plus_calloc(TYPES, sizeof *rows);
    size_t count = 0;
    PyObject *list = PyList_New(0);

    if (rows == NULL || plus_class_sums(owners, &sums) < 0) {
        PyErr_NoMemory();
        Py_CLEAR(list);
    }
    const struct plus_class_sum *sum;
    for (size_t at = 0; list != NULL && (sum = plus_record_table_next(&sums, &at)) != NULL;) {
        const struct plus_marked_type *before = plus_mark_type(mark, sum->type);
        struct class_row row = {.type = sum->type,
                                .objects = sum->objects,
                                .bytes = sum->bytes,
                                .objects_before = before != NULL ? before->objects : 0,
                                .bytes_before = before != NULL ? before->bytes : 0,
                                .is_native = plus_is_class_of_c_code(sum->type),
                                .groups = PLUS_RECORD_TABLE(struct group)};
        uint64_t more = row.bytes > row.bytes_before ? row.bytes - row.bytes_before : 0;
        bool several = mark != NULL && row.objects >= row.objects_before + FEW;
        if (more >= least / 4 || (row.is_native && several)) {
            choose_class(rows, &count, &row);
        }
    }
    for (uint32_t node = graph->frames + 1; list != NULL && node < graph->edges.count; node++) {
        for (size_t i = 0; i < count; i++) {
            if (rows[i].type == Py_TYPE(graph->objects[node])) {
                if (count_in(owners, &rows[i], node) < 0) {
                    PyErr_NoMemory();
                    Py_CLEAR(list);
                }
                break;
            }
        }
    }
    for (size_t i = 0; i < count && list != NULL; i++) {
        plus_append_row(&list, class_as_dict(owners, &rows[i]));
    }
    plus_record_table_clear(&sums);
    plus_free(rows);
    return list;
}

PyObject *
plus_class_row(const struct plus_reach *owners, const PyTypeObject *type)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct class_row row = {.type = (PyTypeObject *)type,
                            .groups = PLUS_RECORD_TABLE(struct group)};

    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        if (Py_TYPE(graph->objects[node]) == type) {
            row.objects++;
            row.bytes += graph->bytes[node];
            if (count_in(owners, &row, node) < 0) {
                return PyErr_NoMemory();
            }
        }
    }
    return row.objects > 0 ? class_as_dict(owners, &row) : Py_NewRef(Py_None);
}
