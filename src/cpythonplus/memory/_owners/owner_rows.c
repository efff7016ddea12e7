#include "owner_rows.h"

#include "../../_base/rows.h"

#include "../../_base/memory/copy_memory.h"
#include "../binding.h"
#include "owner_path.h"

#define KINDS 16   /* limit of different kinds of parts of an owner */
#define DEPTH 8    /* limit of reported steps below an owner */
#define SPREAD 0.5 /* share of an owner's bytes that has to lie behind these steps */

/* Bytes of one kind that wait for the collector, at either look. */
#define MUCH_GARBAGE (1 << 20)

struct kind {
    const void *key; /* the code object, or the class */
    PyTypeObject *type;
    PyObject *code; /* NULL: the parts execute none */
    const char *in;
    Py_ssize_t count;
};

/* Returns the most frequent kind of a node's parts: (name of a class, number, ""), or (name of code, number,
 * "method"). */
static PyObject *
parts_of(const struct plus_reach *owners, uint32_t node)
{
    struct kind kinds[KINDS] = {{NULL, NULL, NULL, NULL, 0}}, *most = &kinds[0];

    for (size_t i = owners->first_child[node]; i < owners->first_child[node + 1]; i++) {
        PyObject *op = owners->graph->objects[owners->child[i]];
        const char *in;
        PyObject *code = plus_together_code(op, &in);
        struct kind kind = {NULL, Py_TYPE(op), code, code != NULL ? in : "", 0};
        size_t at = 0;

        kind.key = kind.code != NULL ? (const void *)kind.code : kind.type;
        while (at < KINDS - 1 && kinds[at].key != NULL && kinds[at].key != kind.key) {
            at++;
        }
        if (kinds[at].key == NULL) {
            kinds[at] = kind;
        }
        kinds[at].count += kinds[at].key == kind.key;
    }
    for (size_t at = 1; at < KINDS; at++) {
        most = kinds[at].count > most->count ? &kinds[at] : most;
    }
    if (most->key == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *name = most->code == NULL
                         ? plus_type_name(most->type)
                         : plus_plain_text(((PyCodeObject *)most->code)->co_qualname);

    return Py_BuildValue("(Nns)", name, most->count, most->in);
}

/* Returns the container that holds most of what an object keeps, so that its entries count as the object's.  NULL:
 * there is none. */
static PyObject *
container_in(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    PyObject *op = graph->objects[node];

    for (int depth = 0; depth < 3 && op != NULL && plus_entries_of(op) < 0; depth++) {
        uint32_t most = PLUS_NO_NODE;
        for (size_t i = owners->first_child[node]; i < owners->first_child[node + 1]; i++) {
            uint32_t child = owners->child[i];
            most =
                most == PLUS_NO_NODE || owners->reached_bytes[child] > owners->reached_bytes[most]
                    ? child
                    : most;
        }
        if (most == PLUS_NO_NODE || owners->reached_bytes[most] * 2 < owners->reached_bytes[node]) {
            return NULL;
        }
        node = most;
        op = graph->objects[node];
    }
    return op;
}

struct branch {
    PyTypeObject *type;
    uint64_t bytes;
    uint32_t example, holder;
};

/* Sums up the children of the nodes by class.  Returns the branch with most bytes; NULL: no children, or no memory. */
static const struct branch *
largest_branch(const struct plus_reach *owners, const uint32_t *nodes, size_t count,
               struct plus_record_table *branches)
{
    const struct branch *most = NULL;

    for (size_t i = 0; i < count; i++) {
        for (size_t at = owners->first_child[nodes[i]]; at < owners->first_child[nodes[i] + 1];
             at++) {
            uint32_t child = owners->child[at];
            struct branch *branch =
                plus_record_table_get(branches, Py_TYPE(owners->graph->objects[child]));
            if (branch == NULL) {
                return NULL;
            }
            if (branch->bytes == 0) {
                branch->example = child;
                branch->holder = nodes[i];
            }
            branch->bytes += owners->reached_bytes[child];
            most = most == NULL || branch->bytes > most->bytes ? branch : most;
        }
    }
    return most;
}

/* Returns a new array with those children of the nodes that are of a class. */
static uint32_t *
children_of_type(const struct plus_reach *owners, const uint32_t *nodes, size_t *count,
                 const PyTypeObject *type)
{
    uint32_t *children = NULL;
    size_t found = 0;

    for (int round = 0; round < 2; round++) { /* first count, then write */
        found = 0;
        for (size_t i = 0; i < *count; i++) {
            for (size_t at = owners->first_child[nodes[i]]; at < owners->first_child[nodes[i] + 1];
                 at++) {
                if (Py_TYPE(owners->graph->objects[owners->child[at]]) == type) {
                    if (children != NULL) {
                        children[found] = owners->child[at];
                    }
                    found++;
                }
            }
        }
        if (round == 0 && (children = plus_malloc((found + 1) * sizeof *children)) == NULL) {
            return NULL;
        }
    }
    *count = found;
    return children;
}

/* Returns the steps, by class, to most of what a node reaches.  The path to one object stands for all that look
 * alike. */
static PyObject *
below(const struct plus_reach *owners, uint32_t node)
{
    PyTypeObject *types[DEPTH];
    uint64_t whole = owners->reached_bytes[node];
    uint32_t *nodes = &node;
    size_t count = 1;
    PyObject *steps = PyList_New(0);

    for (int depth = 0; depth < DEPTH && steps != NULL && nodes != NULL; depth++) {
        struct plus_record_table branches = PLUS_RECORD_TABLE(struct branch);
        const struct branch *most = largest_branch(owners, nodes, count, &branches);

        if (most == NULL || (double)most->bytes < SPREAD * (double)whole) {
            break;
        }
        for (int i = 0; i < depth; i++) {
            if (types[i] == most->type) {
                return steps;
            }
        }
        types[depth] = most->type;
        plus_append_row(&steps, plus_owner_step(owners->graph, most->holder, most->example));
        nodes = children_of_type(owners, nodes, &count, most->type);
    }
    return steps;
}

struct sums {
    uint64_t kept, kept_before, objects, objects_before;
    int64_t entries, entries_before; /* -1: the objects are no containers */
};

static void
add_up(const struct plus_owners_search *it, uint32_t node, struct sums *sums)
{
    const struct plus_reach *owners = it->owners;
    const struct plus_marked *before = plus_mark_before(it->mark, owners->graph->objects[node]);
    PyObject *container = container_in(owners, node);
    const struct plus_marked *entries = plus_mark_before(it->mark, container);
    int64_t length = plus_entries_of(container);

    sums->kept += owners->kept[node];
    sums->objects += owners->reached_objects[node];
    sums->kept_before += before != NULL ? before->kept : 0;
    sums->objects_before += before != NULL ? before->objects : 0;
    if (length >= 0) {
        sums->entries = (sums->entries < 0 ? 0 : sums->entries) + length;
    }
    if (entries != NULL && entries->length >= 0) {
        sums->entries_before =
            (sums->entries_before < 0 ? 0 : sums->entries_before) + entries->length;
    }
}

PyObject *
plus_owner_as_dict(const struct plus_owners_search *it, const struct plus_owner_row *row)
{
    const struct plus_reach *owners = it->owners;
    uint32_t node = row->of[0].node;
    PyObject *op = owners->graph->objects[node];
    struct sums sums = {.entries = -1, .entries_before = -1};
    PyObject *steps = plus_owner_path(owners, node), *parts = NULL, *name = NULL, *result = NULL;
    PyObject *inside = steps == NULL ? NULL : op == NULL ? PyList_New(0) : below(owners, node);

    for (size_t i = 0; i < row->count; i++) {
        add_up(it, row->of[i].node, &sums);
    }
    if (inside != NULL) {
        parts = op == NULL || row->count > 1 ? Py_NewRef(Py_None) : parts_of(owners, node);
        name = op == NULL ? PyUnicode_FromString("frame") : plus_type_name(Py_TYPE(op));
    }
    if (parts != NULL && name != NULL) {
        result = Py_BuildValue(
            "{sOsnsOsOsLsKsKsKsKsLsLsO}", "steps", steps, "alike", (Py_ssize_t)row->count, "below",
            inside, "type", name, "amount_bytes", (long long)row->amount, "kept_bytes",
            (unsigned long long)sums.kept, "kept_before_bytes",
            (unsigned long long)sums.kept_before, "objects", (unsigned long long)sums.objects,
            "objects_before", (unsigned long long)sums.objects_before, "entries",
            (long long)sums.entries, "entries_before", (long long)sums.entries_before, "parts",
            parts);
    }
    Py_XDECREF(steps);
    Py_XDECREF(inside);
    Py_XDECREF(parts);
    Py_XDECREF(name);
    return result;
}

PyObject *
plus_together_rows(const struct plus_owners_search *it, enum plus_together_kind kind)
{
    struct plus_record_table table;
    const struct plus_together *row;
    PyObject *rows = plus_together_count(it->owners, kind, plus_owners_held_limit(it), &table) < 0
                         ? PyErr_NoMemory()
                         : PyList_New(0);

    for (size_t at = 0; rows != NULL && (row = plus_record_table_next(&table, &at)) != NULL;) {
        const struct plus_marked *before = plus_mark_find(it->mark, (uintptr_t)row->key);
        bool known = before != NULL && before->type == 0;
        int64_t then = known ? (int64_t)before->reached : 0, count = known ? before->length : 0;
        bool many = kind < PLUS_TOGETHER_HELD && plus_owners_more(it, row) >= 10;
        /* Reported as an owner of its own. */
        bool grown_alone =
            kind == PLUS_TOGETHER_HELD && it->mark != NULL && !plus_owners_grow_together(it, row);
        PyCodeObject *code = PyCode_Check(row->of) ? (PyCodeObject *)row->of : NULL;

        /* Told even if a collection came in between: it will be as much again. */
        bool waits = kind == PLUS_TOGETHER_UNREACHED &&
                     ((int64_t)row->bytes >= MUCH_GARBAGE || then >= MUCH_GARBAGE);

        if ((row->count < PLUS_MANY && kind == PLUS_TOGETHER_FRAMES) || grown_alone ||
            ((int64_t)row->bytes - then < it->least && !many && !waits)) {
            continue;
        }
        PyObject *name = code != NULL ? plus_plain_text(code->co_qualname)
                                      : plus_type_name((PyTypeObject *)row->of);
        plus_append_row(
            &rows,
            name == NULL
                ? NULL
                : Py_BuildValue(
                      "{sNsssssNsisIsLsKsLsKsK}", "name", name, "in", row->in, "by", row->by,
                      "file", plus_plain_text(code != NULL ? code->co_filename : NULL), "line",
                      code != NULL ? code->co_firstlineno : 0, "count", (unsigned)row->count,
                      "count_before", (long long)count, "bytes", (unsigned long long)row->bytes,
                      "bytes_before", (long long)then, "objects", (unsigned long long)row->objects,
                      "objects_before", (unsigned long long)(known ? before->objects : 0)));
    }
    return rows;
}
