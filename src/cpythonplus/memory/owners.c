/* Each object counts with all on its shortest path from a named root: with a list, and the module that has it.  Owners are
 * looked for from the roots of that tree downwards.  What counts is how much is reached through a node, or by how much that
 * has grown.
 *
 *     one child has most of it          the child is asked in its turn
 *     several have much                 each is asked
 *     it is spread over small ones      this node is an owner: a container, a cache, an object with many parts
 *     a chain without an end            its first node is: a linked list
 *
 * (Memory Analyzer of Eclipse calls them accumulation points.)  Modules, classes and frames only give names.
 *
 * What would be freed with an owner follows from dominators.  They are not asked for owners: what two have, as a set of tasks
 * and the event that these wait for, is neither's.
 *
 * A mark has what was reached through a node, by address and class.  What was freed, and something of the same class put in
 * its place, looks as if it had stayed; that is rare among what keeps much.
 *
 * Nothing is given back: the copy of the process in which this works ends.
 */
#include "owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../_base/copy_memory.h"
#include "../_base/record_table.h"
#include "../_interp/layouts.h"
#include "binding.h"
#include "references.h"
#include "together.h"

#define ROWS 40
#define TYPES 40
#define STEPS 40
#define CHAIN 24
#define WAYS 8
#define DEPTH 8 /* steps below an owner that are told */
#define HELD_BYTES 16384
#define MANY 2
#define LABEL 200         /* characters of a key: the answer of the copy has an end */
#define MARKED_BYTES 2048 /* what keeps less is in no mark */
#define SPREAD 0.5        /* of what a node has, that no child has alone */

/* Entries of a container; -1: it is none. */
static int64_t
length_of(PyObject *op)
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
    /* A class of the program may have any name, and is not immutable. */
    for (size_t i = 0; i < sizeof sized / sizeof sized[0]; i++) {
        if (PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_IMMUTABLETYPE) &&
            strcmp(Py_TYPE(op)->tp_name, sized[i]) == 0) {
            return Py_SIZE(op);
        }
    }
    return -1;
}

/* ---- classes ----------------------------------------------------------------------------------------- */

struct sum {
    PyTypeObject *type;
    uint64_t objects, bytes;
};

/* By class, what is a node; what counts with another is of no interest. */
static int
sum_up(const struct plus_reach *owners, struct plus_record_table *sums)
{
    const struct plus_heap_graph *graph = owners->graph;

    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        struct sum *sum = plus_record_table_get(sums, Py_TYPE(graph->objects[node]));
        if (sum == NULL) {
            return -ENOMEM;
        }
        sum->objects++;
        sum->bytes += graph->bytes[node];
    }
    return 0;
}

/* ---- marks ------------------------------------------------------------------------------------------- */

struct marked {
    uintptr_t object, type; /* type 0: told together */
    uint64_t reached, kept;
    int64_t length;
    uint64_t objects;
};

struct marked_type {
    uintptr_t type;
    uint64_t objects, bytes;
};

struct mark {
    uint64_t magic;
    uint64_t nodes, types;
    uint64_t total_objects, total_bytes;
    /* `nodes` times struct marked, by address; `types` times struct marked_type, by address */
};

#define MAGIC UINT64_C(0x6b72616d2b2b7063)

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

    return (x > y) - (x < y);
}

static struct marked *
marked_nodes(const struct mark *mark)
{
    return (struct marked *)(mark + 1);
}

static struct marked_type *
marked_types(const struct mark *mark)
{
    return (struct marked_type *)(marked_nodes(mark) + mark->nodes);
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
    struct plus_record_table sums = PLUS_RECORD_TABLE(struct sum), together[PLUS_TOGETHER_KINDS];
    uint64_t nodes = 0;
    int status = sum_up(owners, &sums);

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
    *bytes =
        sizeof(struct mark) + nodes * sizeof(struct marked) + types * sizeof(struct marked_type);
    struct mark *mark = plus_malloc(*bytes);

    if (mark == NULL) {
        return NULL;
    }
    *mark = (struct mark){MAGIC, nodes, types, graph->total_objects, graph->total_bytes};
    struct marked *next = marked_nodes(mark);
    for (uint32_t node = 1; node < graph->edges.count; node++) {
        PyObject *op = graph->objects[node];
        if (is_marked(owners, node)) {
            *next++ = (struct marked){
                (uintptr_t)op,      (uintptr_t)Py_TYPE(op), owners->reached_bytes[node],
                owners->kept[node], length_of(op),          owners->reached_objects[node]};
        }
    }
    for (int kind = 0; kind < PLUS_TOGETHER_KINDS; kind++) {
        const struct plus_together *row;
        for (size_t at = 0; (row = plus_record_table_next(&together[kind], &at)) != NULL;) {
            *next++ =
                (struct marked){(uintptr_t)row->key, 0, row->bytes, 0, row->count, row->objects};
        }
    }
    struct marked_type *type = marked_types(mark);
    const struct sum *sum;
    for (size_t at = 0; (sum = plus_record_table_next(&sums, &at)) != NULL;) {
        *type++ = (struct marked_type){(uintptr_t)sum->type, sum->objects, sum->bytes};
    }
    plus_sort_by_word(marked_nodes(mark), nodes, sizeof(struct marked));
    plus_sort_by_word(marked_types(mark), types, sizeof(struct marked_type));
    return mark;
}

/* A mark that is whole, or NULL. */
static const struct mark *
read_mark(const void *before, size_t bytes)
{
    const struct mark *mark = before;

    if (mark == NULL || bytes < sizeof *mark || mark->magic != MAGIC ||
        mark->nodes > bytes / sizeof(struct marked) ||
        mark->types > bytes / sizeof(struct marked_type) ||
        bytes < sizeof *mark + mark->nodes * sizeof(struct marked) +
                    mark->types * sizeof(struct marked_type)) {
        return NULL;
    }
    return mark;
}

/* NULL: there is none. */
static const struct marked *
find_marked(const struct mark *mark, uintptr_t key)
{
    return mark == NULL
               ? NULL
               : bsearch(&key, marked_nodes(mark), mark->nodes, sizeof(struct marked), by_address);
}

/* NULL: it was not there, or kept little. */
static const struct marked *
before_of(const struct mark *mark, PyObject *op)
{
    const struct marked *found = op == NULL ? NULL : find_marked(mark, (uintptr_t)op);

    return found != NULL && found->type == (uintptr_t)Py_TYPE(op) ? found : NULL;
}

/* ---- owners ------------------------------------------------------------------------------------------ */

struct owner {
    uint32_t node;
    int64_t amount;
};

struct finding {
    const struct plus_reach *owners;
    const struct mark *mark;
    int64_t least;
    struct owner rows[ROWS]; /* largest first */
    size_t count;
    struct plus_record_table held; /* told together */
};

static int64_t
amount_of(const struct finding *it, uint32_t node)
{
    const struct marked *before = before_of(it->mark, it->owners->graph->objects[node]);

    return (int64_t)it->owners->reached_bytes[node] -
           (before != NULL ? (int64_t)before->reached : 0);
}

static void
note(struct finding *it, uint32_t node, int64_t amount)
{
    size_t at = it->count < ROWS ? it->count++ : ROWS;

    if (at == ROWS && (amount <= it->rows[ROWS - 1].amount)) {
        return;
    }
    at = at == ROWS ? ROWS - 1 : at;
    for (; at > 0 && it->rows[at - 1].amount < amount; at--) {
        it->rows[at] = it->rows[at - 1];
    }
    it->rows[at] = (struct owner){node, amount};
}

struct task {
    uint32_t node, chain; /* where a chain of only children began */
    uint32_t length;      /* of it */
};

struct tasks {
    struct task *all;
    size_t count, room;
};

static int
push(struct tasks *tasks, struct task task)
{
    if (tasks->count == tasks->room) {
        size_t room = tasks->room > 0 ? 2 * tasks->room : 1024;
        struct task *all = plus_realloc(tasks->all, room * sizeof *all);
        if (all == NULL) {
            return -ENOMEM;
        }
        tasks->all = all;
        tasks->room = room;
    }
    tasks->all[tasks->count++] = task;
    return 0;
}

/* Without an earlier look, what has much is told by itself. */
static uint64_t
held_limit(const struct finding *it)
{
    return it->mark != NULL ? UINT64_MAX : HELD_BYTES;
}

static int64_t
more_than_before(const struct finding *it, const struct plus_together *row)
{
    const struct marked *before = find_marked(it->mark, (uintptr_t)row->key);

    return (int64_t)row->count - (before != NULL && before->type == 0 ? before->length : 0);
}

/* Garbage is told by class; what C code holds, if there are more of the same than before, and this is a new one. */
static bool
is_told_together(const struct finding *it, uint32_t root)
{
    const struct plus_reach *owners = it->owners;

    if (owners->anchor[root] == PLUS_GARBAGE) {
        return true;
    }
    const void *key = plus_together_key(owners, root);
    const struct plus_together *row = key == NULL ? NULL : plus_record_table_find(&it->held, key);

    return it->mark != NULL && row != NULL && more_than_before(it, row) >= MANY &&
           before_of(it->mark, owners->graph->objects[root]) == NULL;
}

static int
look_at(struct finding *it, struct tasks *tasks, struct task task)
{
    const struct plus_reach *owners = it->owners;
    int64_t own = amount_of(it, task.node), most = 0, explained = 0;
    uint32_t large = 0;

    for (size_t i = owners->first_child[task.node]; i < owners->first_child[task.node + 1]; i++) {
        if ((int64_t)owners->reached_bytes[owners->child[i]] < it->least) {
            continue;
        }
        int64_t amount = amount_of(it, owners->child[i]);
        if (amount >= it->least) {
            large++;
            explained += amount;
            most = amount > most ? amount : most;
        }
    }
    bool names = task.node == 0 || plus_reach_is_namespace(owners, task.node);

    if (!names && (double)most < SPREAD * (double)own) {
        note(it, task.node, own);
        return 0;
    }
    if (!names && large == 1 && task.length >= CHAIN) {
        note(it, task.chain, amount_of(it, task.chain));
        return 0;
    }
    bool has_before = it->mark == NULL || owners->graph->objects[task.node] != NULL;

    if (task.node != 0 && has_before && own - explained >= it->least) {
        note(it, task.node, own - explained);
    }
    for (size_t i = owners->first_child[task.node]; i < owners->first_child[task.node + 1]; i++) {
        uint32_t child = owners->child[i];
        if ((int64_t)owners->reached_bytes[child] >= it->least &&
            amount_of(it, child) >= it->least && (task.node != 0 || !is_told_together(it, child))) {
            bool goes_on = large == 1 && !names;
            struct task next = {child, goes_on ? task.chain : child, goes_on ? task.length + 1 : 0};
            if (push(tasks, next) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static int
find_owners(struct finding *it)
{
    struct tasks tasks = {.all = NULL};
    int status = plus_together_count(it->owners, PLUS_TOGETHER_HELD, held_limit(it), &it->held);

    if (status == 0) {
        status = push(&tasks, (struct task){0, 0, 0});
    }

    while (status == 0 && tasks.count > 0) {
        status = look_at(it, &tasks, tasks.all[--tasks.count]);
    }
    plus_free(tasks.all);
    return status;
}

/* ---- names: Python objects from here on ---------------------------------------------------------------- */

static PyObject *
type_name(const PyTypeObject *type)
{
    PyObject *module = plus_dict_item(plus_class_dict((PyTypeObject *)type), "__module__");
    PyObject *name = PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_HEAPTYPE)
                         ? ((PyHeapTypeObject *)type)->ht_qualname
                         : NULL;

    if (name == NULL || !PyUnicode_CheckExact(name)) {
        return PyUnicode_FromString(type->tp_name);
    }
    return module != NULL && PyUnicode_CheckExact(module)
               ? PyUnicode_FromFormat("%U.%U", module, name)
               : Py_NewRef(name);
}

/* A text that marshal can write: a program may put an instance of a class derived from str where a name is.  NULL, without an
 * exception, stands for no name. */
static PyObject *
plain_text(PyObject *text)
{
    PyObject *plain = text != NULL && PyUnicode_Check(text) ? PyUnicode_FromObject(text) : NULL;

    PyErr_Clear();
    return plain != NULL ? plain : Py_NewRef(Py_None);
}

static PyObject *
named(PyObject *label)
{
    if (PyUnicode_CheckExact(label)) {
        return PyUnicode_Substring(label, 0, LABEL);
    }
    if (PyLong_CheckExact(label) || label == Py_None) {
        return Py_NewRef(label);
    }
    PyObject *name = type_name(Py_TYPE(label)), *pair = NULL;

    if (name != NULL) {
        pair = Py_BuildValue("(N)", name);
    }
    return pair;
}

/* (how, label, type's name) */
static PyObject *
step_of(const struct plus_heap_graph *graph, uint32_t from, uint32_t to)
{
    PyObject *target = graph->objects[to], *source = graph->objects[from];
    bool names = (PyType_Check(source) && plus_class_dict((PyTypeObject *)source) == target) ||
                 (PyModule_Check(source) && PyModule_GetDict(source) == target);
    PyObject *label =
        names ? Py_BuildValue("(sO)", "dict", Py_None) : plus_reference_label(source, target);
    PyObject *step = NULL, *name = label == NULL ? NULL : named(PyTuple_GET_ITEM(label, 1));

    if (name != NULL) {
        step = Py_BuildValue("(ONN)", PyTuple_GET_ITEM(label, 0), name, type_name(Py_TYPE(target)));
    }
    Py_XDECREF(label);
    return step;
}

/* The first step: a module, a variable of a function, a class, or what else is a root. */
static PyObject *
root_step(const struct plus_reach *owners, uint32_t node)
{
    PyObject *op = owners->graph->objects[node];

    if (owners->anchor[node] == PLUS_GARBAGE) {
        return Py_BuildValue("(ssN)", "root", "garbage", type_name(Py_TYPE(op)));
    }
    if (PyModule_Check(op)) {
        PyObject *name = plus_dict_item(PyModule_GetDict(op), "__name__");
        return Py_BuildValue("(sNs)", "module", plain_text(name), "module");
    }
    return Py_BuildValue("(sON)", "root", Py_None, type_name(Py_TYPE(op)));
}

static PyObject *
variable_step(const struct plus_heap_graph *graph, uint32_t frame, uint32_t to)
{
    PyCodeObject *code = graph->codes[frame - 1];
    PyObject *name = plus_heap_graph_variable(frame, graph->objects[to]);

    return Py_BuildValue("(s(NNNi)N)", "variable", plain_text(name), plain_text(code->co_qualname),
                         plain_text(code->co_filename), code->co_firstlineno,
                         type_name(Py_TYPE(graph->objects[to])));
}

/* From a root on; what lies in the middle of very long ones is left out. */
static PyObject *
path_of(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint32_t path[STEPS], length = 0;

    for (uint32_t at = node; at != PLUS_NO_NODE; at = owners->parent[at]) {
        if (length < STEPS) {
            path[length++] = at;
        }
        else { /* the root's end counts more than the middle */
            memmove(&path[STEPS / 2], &path[STEPS / 2 + 1],
                    (STEPS - STEPS / 2 - 1) * sizeof path[0]);
            path[STEPS - 1] = at;
        }
    }
    PyObject *steps = PyList_New(0);

    for (uint32_t i = length; i-- > 0 && steps != NULL;) {
        bool first = i == length - 1, frame = !first && graph->objects[path[i + 1]] == NULL;

        if (graph->objects[path[i]] == NULL) {
            continue;
        }
        plus_append_row(&steps, frame && owners->parent[path[i]] == path[i + 1]
                                    ? variable_step(graph, path[i + 1], path[i])
                                : first ? root_step(owners, path[i])
                                : owners->parent[path[i]] != path[i + 1]
                                    ? Py_BuildValue("(sOs)", "...", Py_None, "")
                                    : step_of(graph, path[i + 1], path[i]));
    }
    return steps;
}

/* (type's name, number) of what most of a node's parts are. */
static PyObject *
parts_of(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct {
        PyTypeObject *type;
        Py_ssize_t count;
    } kinds[16] = {{NULL, 0}}, *most = &kinds[0];

    for (size_t i = owners->first_child[node]; i < owners->first_child[node + 1]; i++) {
        PyTypeObject *type = Py_TYPE(graph->objects[owners->child[i]]);
        size_t at = 0;

        while (at < 15 && kinds[at].type != NULL && kinds[at].type != type) {
            at++;
        }
        kinds[at].type = kinds[at].type == NULL ? type : kinds[at].type;
        kinds[at].count += kinds[at].type == type;
    }
    for (size_t at = 1; at < 16; at++) {
        most = kinds[at].count > most->count ? &kinds[at] : most;
    }
    return most->type == NULL ? Py_NewRef(Py_None)
                              : Py_BuildValue("(Nn)", type_name(most->type), most->count);
}

/* Where a container is all that an object keeps much in, its entries are the object's. */
static PyObject *
container_in(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    PyObject *op = graph->objects[node];

    for (int depth = 0; depth < 3 && op != NULL && length_of(op) < 0; depth++) {
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

/* By class, the children of some nodes.  The branch with most bytes; NULL: they have none, or no memory. */
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

/* Of the nodes' children those of a class: a new array. */
static uint32_t *
children_of_type(const struct plus_reach *owners, const uint32_t *nodes, size_t *count,
                 const PyTypeObject *type)
{
    uint32_t *children = NULL;
    size_t found = 0;

    for (int round = 0; round < 2; round++) { /* counts, then writes */
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

/* The steps that most of what a node has lies behind, by class: one way stands for all alike. */
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
        plus_append_row(&steps, step_of(owners->graph, most->holder, most->example));
        nodes = children_of_type(owners, nodes, &count, most->type);
    }
    return steps;
}

static PyObject *
owner_row(const struct finding *it, const struct owner *row)
{
    const struct plus_reach *owners = it->owners;
    PyObject *op = owners->graph->objects[row->node];
    const struct marked *before = before_of(it->mark, op);
    PyObject *container = container_in(owners, row->node);
    const struct marked *entries = before_of(it->mark, container);
    PyObject *steps = path_of(owners, row->node), *parts = NULL, *name = NULL, *result = NULL;
    PyObject *inside = steps == NULL ? NULL : op == NULL ? PyList_New(0) : below(owners, row->node);

    if (inside != NULL) {
        parts = op == NULL ? Py_NewRef(Py_None) : parts_of(owners, row->node);
        name = op == NULL ? PyUnicode_FromString("frame") : type_name(Py_TYPE(op));
    }
    if (parts != NULL && name != NULL) {
        result = Py_BuildValue("{sOsOsOsLsKsKsksKsLsLsO}", "steps", steps, "below", inside, "type",
                               name, "amount_bytes", (long long)row->amount, "kept_bytes",
                               (unsigned long long)owners->kept[row->node], "kept_before_bytes",
                               (unsigned long long)(before != NULL ? before->kept : 0), "objects",
                               (unsigned long)owners->reached_objects[row->node], "objects_before",
                               (unsigned long long)(before != NULL ? before->objects : 0),
                               "entries", (long long)length_of(container), "entries_before",
                               (long long)(entries != NULL ? entries->length : -1), "parts", parts);
    }
    Py_XDECREF(steps);
    Py_XDECREF(inside);
    Py_XDECREF(parts);
    Py_XDECREF(name);
    return result;
}

/* (function or class, file, line, number, ...) of what is told together and has grown. */
static PyObject *
together_rows(const struct finding *it, enum plus_together_kind kind)
{
    struct plus_record_table table;
    const struct plus_together *row;
    PyObject *rows = plus_together_count(it->owners, kind, held_limit(it), &table) < 0
                         ? PyErr_NoMemory()
                         : PyList_New(0);

    for (size_t at = 0; rows != NULL && (row = plus_record_table_next(&table, &at)) != NULL;) {
        const struct marked *before = find_marked(it->mark, (uintptr_t)row->key);
        bool known = before != NULL && before->type == 0;
        int64_t then = known ? (int64_t)before->reached : 0, count = known ? before->length : 0;
        bool many = kind < PLUS_TOGETHER_HELD && more_than_before(it, row) >= 10;
        bool grown_alone = kind == PLUS_TOGETHER_HELD && it->mark != NULL &&
                           more_than_before(it, row) < MANY; /* is told by itself */
        PyCodeObject *code = PyCode_Check(row->of) ? (PyCodeObject *)row->of : NULL;

        if ((row->count < MANY && kind == PLUS_TOGETHER_FRAMES) || grown_alone ||
            ((int64_t)row->bytes - then < it->least && !many)) {
            continue;
        }
        PyObject *name =
            code != NULL ? plain_text(code->co_qualname) : type_name((PyTypeObject *)row->of);
        plus_append_row(
            &rows,
            name == NULL
                ? NULL
                : Py_BuildValue("{sNsssNsisIsLsKsLsKsK}", "name", name, "in", row->in, "file",
                                plain_text(code != NULL ? code->co_filename : NULL), "line",
                                code != NULL ? code->co_firstlineno : 0, "count",
                                (unsigned)row->count, "count_before", (long long)count, "bytes",
                                (unsigned long long)row->bytes, "bytes_before", (long long)then,
                                "objects", (unsigned long long)row->objects, "objects_before",
                                (unsigned long long)(known ? before->objects : 0)));
    }
    return rows;
}

/* ---- classes and where most of their objects are -------------------------------------------------------- */

struct group {
    const void *key;
    uint32_t example;
    uint64_t objects;
};

struct class_row {
    PyTypeObject *type;
    uint64_t objects, bytes, objects_before, bytes_before;
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

/* Ways that are spelled alike are one: no two garbage cycles, variables of a function, or objects of C code have a name of
 * their own. */
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
    PyObject *groups = PyList_New(0), *name = type_name(row->type), *result = NULL;

    for (int told = 0; told < WAYS && groups != NULL; told++) {
        struct group *most = NULL, *group;
        for (size_t at = 0; (group = plus_record_table_next(&row->groups, &at)) != NULL;) {
            most = most == NULL || group->objects > most->objects ? group : most;
        }
        if (most == NULL || most->objects == 0) {
            break;
        }
        PyObject *steps = path_of(owners, most->example);
        plus_append_row(&groups, steps == NULL ? NULL
                                               : Py_BuildValue("{sKsN}", "objects",
                                                               (unsigned long long)most->objects,
                                                               "steps", steps));
        most->objects = 0;
    }
    if (groups != NULL && name != NULL) {
        result = Py_BuildValue("{sOsKsKsKsKsO}", "type", name, "objects",
                               (unsigned long long)row->objects, "objects_before",
                               (unsigned long long)row->objects_before, "bytes",
                               (unsigned long long)row->bytes, "bytes_before",
                               (unsigned long long)row->bytes_before, "groups", groups);
    }
    Py_XDECREF(groups);
    Py_XDECREF(name);
    return result;
}

static const struct marked_type *
type_before(const struct mark *mark, const PyTypeObject *type)
{
    uintptr_t key = (uintptr_t)type;

    return mark == NULL ? NULL
                        : bsearch(&key, marked_types(mark), mark->types, sizeof(struct marked_type),
                                  by_address);
}

/* Largest first, at most TYPES; in the order of the list. */
static PyObject *
class_rows(const struct plus_reach *owners, const struct mark *mark, uint64_t least)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct plus_record_table sums = PLUS_RECORD_TABLE(struct sum);
    struct class_row *rows = plus_calloc(TYPES, sizeof *rows);
    size_t count = 0;
    PyObject *list = PyList_New(0);

    if (rows == NULL || sum_up(owners, &sums) < 0) {
        PyErr_NoMemory();
        Py_CLEAR(list);
    }
    const struct sum *sum;
    for (size_t at = 0; list != NULL && (sum = plus_record_table_next(&sums, &at)) != NULL;) {
        const struct marked_type *before = type_before(mark, sum->type);
        struct class_row row = {.type = sum->type,
                                .objects = sum->objects,
                                .bytes = sum->bytes,
                                .objects_before = before != NULL ? before->objects : 0,
                                .bytes_before = before != NULL ? before->bytes : 0,
                                .groups = PLUS_RECORD_TABLE(struct group)};
        if (row.bytes > row.bytes_before && row.bytes - row.bytes_before >= least / 4) {
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

/* Of one class, the same; None: it has no object that is a node. */
static PyObject *
one_class(const struct plus_reach *owners, const PyTypeObject *type)
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

PyObject *
plus_owners_report(const struct plus_reach *owners, const void *before, size_t before_bytes,
                   uint64_t least, const PyTypeObject *asked)
{
    const struct plus_heap_graph *graph = owners->graph;
    struct finding it = {
        .owners = owners, .mark = read_mark(before, before_bytes), .least = (int64_t)least};

    if (find_owners(&it) < 0) {
        return PyErr_NoMemory();
    }
    PyObject *rows = PyList_New(0), *together[PLUS_TOGETHER_KINDS] = {NULL}, *result = NULL;

    for (size_t i = 0; i < it.count && rows != NULL; i++) {
        plus_append_row(&rows, owner_row(&it, &it.rows[i]));
    }
    PyObject *classes = rows == NULL ? NULL : class_rows(owners, it.mark, least);
    PyObject *one = classes == NULL ? NULL : one_class(owners, asked);
    bool made = one != NULL;

    for (int kind = 0; kind < PLUS_TOGETHER_KINDS && made; kind++) {
        together[kind] = together_rows(&it, (enum plus_together_kind)kind);
        made = together[kind] != NULL;
    }
    if (made) {
        result = Py_BuildValue(
            "{sKsKsKsKsKsKsOsOsOsOsOsOsO}", "objects", (unsigned long long)graph->total_objects,
            "bytes", (unsigned long long)graph->total_bytes, "large_bytes",
            (unsigned long long)graph->large_bytes, "small_bytes",
            (unsigned long long)graph->small_bytes, "objects_before",
            (unsigned long long)(it.mark != NULL ? it.mark->total_objects : 0), "bytes_before",
            (unsigned long long)(it.mark != NULL ? it.mark->total_bytes : 0), "owners", rows,
            "classes", classes, "frames", together[PLUS_TOGETHER_FRAMES], "unreached",
            together[PLUS_TOGETHER_UNREACHED], "held", together[PLUS_TOGETHER_HELD], "left",
            together[PLUS_TOGETHER_LEFT], "asked", one);
    }
    Py_XDECREF(rows);
    Py_XDECREF(classes);
    Py_XDECREF(one);
    for (int kind = 0; kind < PLUS_TOGETHER_KINDS; kind++) {
        Py_XDECREF(together[kind]);
    }
    return result;
}
