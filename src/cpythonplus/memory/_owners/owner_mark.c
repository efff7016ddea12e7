/* A mark holds the bytes reached through each node, by address and class; the sums of objects that share a row
 * (together.h), by key; and sums by class. */
#include "owner_mark.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_interp/objects/object_parts.h"
#include "together.h"

#define MARKED_BYTES 2048 /* nodes that keep less are not in a mark */
#define MAGIC UINT64_C(0x6b72616d2b2b7063)

int64_t
plus_entries_of(PyObject *op)
{
    static const char *const sized[] = {"collections.deque", "array.array"};

    if (op == NULL) {
        return -1;
    }
    if (PyDict_Check(op)) {
        return PyDict_GET_SIZE(op);
    }
    if (PyAnySet_Check(op)) {
        return PySet_GET_SIZE(op);
    }
    if (PyList_Check(op)) {
        return PyList_GET_SIZE(op);
    }
    if (PyByteArray_Check(op)) {
        return PyByteArray_GET_SIZE(op);
    }
    /* The name alone proves nothing: a class of the program may have any name, but it is mutable. */
    for (size_t i = 0; i < sizeof sized / sizeof sized[0]; i++) {
        if (PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_IMMUTABLETYPE) &&
            strcmp(Py_TYPE(op)->tp_name, sized[i]) == 0) {
            return Py_SIZE(op);
        }
    }
    return -1;
}

uint64_t
plus_table_bytes(PyObject *op)
{
    if (op == NULL || (!PyDict_Check(op) && !PyAnySet_Check(op) && !PyList_Check(op))) {
        return 0;
    }
    struct plus_measuring how = plus_measuring_of(Py_TYPE(op));
    Py_ssize_t bytes = plus_parts_of(&how, op).table;

    return bytes > 0 ? (uint64_t)bytes : 0;
}

int
plus_class_sums(const struct plus_reach *owners, struct plus_record_table *sums)
{
    const struct plus_heap_graph *graph = owners->graph;

    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        struct plus_class_sum *sum = plus_record_table_get(sums, Py_TYPE(graph->objects[node]));
        if (sum == NULL) {
            return -ENOMEM;
        }
        sum->objects++;
        sum->bytes += graph->bytes[node];
    }
    return 0;
}

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

    return (x > y) - (x < y);
}

static struct plus_marked *
marked_nodes(const struct plus_mark *mark)
{
    return (struct plus_marked *)(mark + 1);
}

static struct plus_marked_type *
marked_types(const struct plus_mark *mark)
{
    return (struct plus_marked_type *)(marked_nodes(mark) + mark->nodes);
}

static bool
is_marked(const struct plus_reach *owners, uint32_t node)
{
    return owners->graph->objects[node] != NULL && owners->reached_bytes[node] >= MARKED_BYTES;
}

void *
plus_owners_mark(const struct plus_reach *owners, size_t *bytes)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct plus_record_table sums = PLUS_RECORD_TABLE(struct plus_class_sum),
                             together[PLUS_TOGETHER_KINDS];
    uint64_t nodes = 0;
    int status = plus_class_sums(owners, &sums);

    for (int kind = 0; kind < PLUS_TOGETHER_KINDS && status == 0; kind++) {
        status =
            plus_together_count(owners, (enum plus_together_kind)kind, UINT64_MAX, &together[kind]);
        nodes += together[kind].addresses.count;
    }
    if (status < 0) {
        return NULL;
    }
    size_t types = sums.addresses.count;

    for (uint32_t node = 1; node < graph->edges.count; node++) {
        nodes += is_marked(owners, node);
    }
    *bytes = sizeof(struct plus_mark) + nodes * sizeof(struct plus_marked) +
             types * sizeof(struct plus_marked_type);
    struct plus_mark *mark = plus_malloc(*bytes);

    if (mark == NULL) {
        return NULL;
    }
    *mark = (struct plus_mark){MAGIC, nodes, types, graph->total_objects, graph->total_bytes};
    struct plus_marked *next = marked_nodes(mark);
    for (uint32_t node = 1; node < graph->edges.count; node++) {
        PyObject *op = graph->objects[node];
        if (is_marked(owners, node)) {
            *next++ = (struct plus_marked){.object = (uintptr_t)op,
                                           .type = (uintptr_t)Py_TYPE(op),
                                           .reached = owners->reached_bytes[node],
                                           .kept = owners->kept[node],
                                           .table = plus_table_bytes(op),
                                           .length = plus_entries_of(op),
                                           .objects = owners->reached_objects[node]};
        }
    }
    for (int kind = 0; kind < PLUS_TOGETHER_KINDS; kind++) {
        const struct plus_together *row;
        for (size_t at = 0; (row = plus_record_table_next(&together[kind], &at)) != NULL;) {
            *next++ = (struct plus_marked){.object = (uintptr_t)row->key,
                                           .reached = row->bytes,
                                           .length = row->count,
                                           .objects = row->objects};
        }
    }
    struct plus_marked_type *type = marked_types(mark);
    const struct plus_class_sum *sum;
    for (size_t at = 0; (sum = plus_record_table_next(&sums, &at)) != NULL;) {
        *type++ = (struct plus_marked_type){(uintptr_t)sum->type, sum->objects, sum->bytes};
    }
    plus_sort_by_word(marked_nodes(mark), nodes, sizeof(struct plus_marked));
    plus_sort_by_word(marked_types(mark), types, sizeof(struct plus_marked_type));
    return mark;
}

const struct plus_mark *
plus_mark_read(const void *before, size_t bytes)
{
    const struct plus_mark *mark = before;

    if (mark == NULL || bytes < sizeof *mark || mark->magic != MAGIC ||
        mark->nodes > bytes / sizeof(struct plus_marked) ||
        mark->types > bytes / sizeof(struct plus_marked_type) ||
        bytes < sizeof *mark + mark->nodes * sizeof(struct plus_marked) +
                    mark->types * sizeof(struct plus_marked_type)) {
        return NULL;
    }
    return mark;
}

const struct plus_marked *
plus_mark_find(const struct plus_mark *mark, uintptr_t key)
{
    return mark == NULL ? NULL
                        : bsearch(&key, marked_nodes(mark), mark->nodes, sizeof(struct plus_marked),
                                  by_address);
}

const struct plus_marked *
plus_mark_before(const struct plus_mark *mark, PyObject *op)
{
    const struct plus_marked *found = op == NULL ? NULL : plus_mark_find(mark, (uintptr_t)op);

    return found != NULL && found->type == (uintptr_t)Py_TYPE(op) ? found : NULL;
}

const struct plus_marked_type *
plus_mark_type(const struct plus_mark *mark, const PyTypeObject *type)
{
    uintptr_t key = (uintptr_t)type;

    return mark == NULL ? NULL
                        : bsearch(&key, marked_types(mark), mark->types,
                                  sizeof(struct plus_marked_type), by_address);
}

/* ---- tables that have grown ahead of their entries --------------------------------------------------- */

/* A table may grow in proportion to its entries; anything above that is room for entries to come.
 *
 *     87,381 entries, 5.0 MiB  ->  87,400 entries, 10.0 MiB      5.0 MiB is room
 *     40,000 entries, 2.5 MiB  ->  80,000 entries, 5.0 MiB       none of it is
 *
 * Rejected: leaving tables out altogether.  A list or a dict of many numbers takes nothing but its table. */
uint64_t
plus_table_excess(const struct plus_reach *owners, const struct plus_mark *mark, uint32_t node)
{
    PyObject *op = owners->graph->objects[node];
    uint64_t now = plus_table_bytes(op);
    const struct plus_marked *before = now == 0 ? NULL : plus_mark_before(mark, op);

    if (before == NULL || before->length <= 0 || now <= before->table) {
        return 0;
    }
    double more = (double)plus_entries_of(op) / (double)before->length;
    double fair = (double)before->table * (more > 1 ? more : 1);

    return (double)now > fair ? now - (uint64_t)fair : 0;
}

uint64_t *
plus_tables_find(const struct plus_reach *owners, const struct plus_mark *mark, int *status)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint64_t *excess = NULL;

    *status = 0;
    for (uint32_t node = graph->frames + 1; mark != NULL && node < graph->edges.count; node++) {
        uint64_t bytes = plus_table_excess(owners, mark, node);
        if (bytes > 0 && excess == NULL &&
            (excess = plus_calloc(graph->edges.count, sizeof *excess)) == NULL) {
            *status = -ENOMEM;
            return NULL;
        }
        if (bytes > 0) {
            excess[node] = bytes;
        }
    }
    for (uint32_t i = graph->edges.count - 1; excess != NULL && i-- > 0;) {
        uint32_t node = owners->queue[i], holder = owners->parent[node];
        excess[holder == PLUS_NO_NODE ? 0 : holder] += excess[node];
    }
    return excess;
}
