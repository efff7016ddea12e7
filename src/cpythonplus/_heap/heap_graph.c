/* Two walks: the first numbers the objects, the second finds the references.
 *
 * Roots are, in this order: modules; frames; the objects that the interpreter is known to hold (keepers.c); and objects
 * with more references than the walk can see: C code, the interpreter or an operand that is not found holds them.  An
 * object that no root leads to is garbage, or is held invisibly; plus_graph_reach_all() makes some of those roots.  The
 * reference count of an immortal object says nothing, nor does that of a function, module or class on a free-threaded
 * build: it is a root only if no object refers to it.
 */
#include "heap_graph.h"

#include <errno.h>
#include <string.h>

#include "../_base/memory/address_table.h"
#include "../_base/memory/copy_memory.h"
#include "../_base/memory/record_table.h"
#include "../_interp/frames/live_frames.h"
#include "../_interp/objects/gc_objects.h"
#include "../_interp/objects/object_parts.h"
#include "../_interp/objects/referents.h"
#include "greenlets.h"
#include "heap_walk.h"

#define STEP 16 /* of the sizes of blocks, of pymalloc's and of glibc's malloc */
#define LEAST_CHUNK 32
#define LARGE_VALUE 4096 /* a value of so many bytes is a node */

struct measured {
    PyTypeObject *type;
    struct plus_measuring how;
};

struct building {
    struct plus_heap_graph *graph;
    const struct plus_arenas *arenas;
    const struct plus_arena *arena; /* the arena of the last object that was in one */
    struct plus_record_table types;
    PyObject *last; /* the object of node last_node */
    uint32_t last_node;
    uint32_t frame;
};

/* ---- nodes ---------------------------------------------------------------------------------------- */

static size_t
slot_of(const struct plus_heap_graph *graph, const PyObject *op)
{
    size_t slot = (size_t)(plus_address_hash(op) >> 16) & graph->mask;

    while (graph->slots[slot] != 0 && graph->objects[graph->slots[slot]] != op) {
        slot = (slot + 1) & graph->mask;
    }
    return slot;
}

uint32_t
plus_heap_graph_node(const struct plus_heap_graph *graph, const PyObject *op)
{
    uint32_t node = graph->slots[slot_of(graph, op)];

    return node != 0 ? node : PLUS_NO_NODE;
}

static int
resize(void **array, size_t count, size_t item_bytes)
{
    void *larger = plus_realloc(*array, count * item_bytes);

    *array = larger != NULL ? larger : *array;
    return larger != NULL ? 0 : -ENOMEM;
}

static int
grow(struct plus_heap_graph *graph)
{
    size_t capacity = graph->capacity > 0 ? 2 * graph->capacity : (size_t)1 << 16;

    if (capacity > (size_t)1 << 31 ||
        resize((void **)&graph->objects, capacity, sizeof *graph->objects) < 0 ||
        resize((void **)&graph->bytes, capacity, sizeof *graph->bytes) < 0 ||
        resize((void **)&graph->members, capacity, sizeof *graph->members) < 0) {
        return -ENOMEM;
    }
    uint32_t *slots = plus_calloc(2 * capacity, sizeof *slots);

    if (slots == NULL) {
        return -ENOMEM;
    }
    plus_free(graph->slots);
    graph->slots = slots;
    graph->mask = 2 * capacity - 1;
    graph->capacity = capacity;
    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        graph->slots[slot_of(graph, graph->objects[node])] = node;
    }
    return 0;
}

/* The new node; PLUS_NO_NODE if there is no memory. */
static uint32_t
add_node(struct plus_heap_graph *graph, PyObject *op, uint64_t bytes)
{
    uint32_t node = graph->edges.count;

    if (node >= graph->capacity && grow(graph) < 0) {
        return PLUS_NO_NODE;
    }
    graph->objects[node] = op;
    graph->bytes[node] = bytes;
    graph->members[node] = op != NULL;
    if (op != NULL) {
        graph->slots[slot_of(graph, op)] = node;
    }
    graph->edges.count++;
    return node;
}

static uint32_t
node_of(struct building *it, PyObject *op)
{
    if (op != it->last) {
        it->last = op;
        it->last_node = plus_heap_graph_node(it->graph, op);
    }
    return it->last_node;
}

/* False for static objects of the interpreter's binary. */
static bool
is_in_arena(struct building *it, const PyObject *op)
{
    const struct plus_arenas *arenas = it->arenas;
    uintptr_t address = (uintptr_t)op;
    size_t first = 0, end = arenas->count;

    if (it->arena != NULL && address >= it->arena->start && address < it->arena->end) {
        return true;
    }
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (address >= arenas->list[middle].end) {
            first = middle + 1;
        }
        else {
            end = middle;
        }
    }
    bool found = first < arenas->count && address >= arenas->list[first].start;

    it->arena = found ? &arenas->list[first] : it->arena;
    return found;
}

/* The bytes of a block of malloc with its head, which is a word. */
static uint64_t
chunk_bytes(Py_ssize_t block)
{
    uint64_t bytes = ((uint64_t)block + sizeof(uintptr_t) + STEP - 1) / STEP * STEP;

    return bytes > LEAST_CHUNK ? bytes : LEAST_CHUNK;
}

/* The bytes of all its blocks. */
static int64_t
measure(struct building *it, PyObject *op)
{
    struct measured *type = plus_record_table_find(&it->types, Py_TYPE(op));

    if (type == NULL) {
        type = plus_record_table_add(&it->types, Py_TYPE(op));
        if (type == NULL) {
            return -ENOMEM;
        }
        type->how = plus_measuring_of(Py_TYPE(op));
    }
    struct plus_parts parts = plus_parts_of(&type->how, op);
    Py_ssize_t blocks[] = {parts.object, parts.table, parts.values};

    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        if (blocks[i] > (Py_ssize_t)it->graph->pooled) {
            it->graph->large_bytes += chunk_bytes(blocks[i]);
        }
        else if (blocks[i] > 0 && is_in_arena(it, op)) {
            it->graph->small_bytes += ((uint64_t)blocks[i] + STEP - 1) / STEP * STEP;
        }
    }
    return parts.object + parts.table + parts.values;
}

/* True for small values.  A class that compares its instances by identity may have memory that only C code knows, as a
 * connection or a stream of zlib: these are told by their paths. */
static bool
is_small_value(PyObject *op, int64_t bytes)
{
    return bytes < LARGE_VALUE && Py_TYPE(op)->tp_hash != PyBaseObject_Type.tp_hash;
}

bool
plus_is_class_of_c_code(const PyTypeObject *type)
{
    static destructor made; /* of all classes that are made by a class statement */

    if (made == NULL) {
        PyObject *class = PyErr_NewException("builtins.made", NULL, NULL); /* never released */
        if (class == NULL) {
            PyErr_Clear();
            return false;
        }
        made = ((PyTypeObject *)class)->tp_dealloc;
    }
    while (type != NULL && type->tp_dealloc == made) {
        type = type->tp_base;
    }
    return type != NULL && strchr(type->tp_name, '.') != NULL &&
           type->tp_hash == PyBaseObject_Type.tp_hash;
}

static int
number(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct building *it = arg;
    struct plus_heap_graph *graph = it->graph;
    int64_t bytes = measure(it, op);

    if (bytes < 0) {
        return -ENOMEM;
    }
    if (!plus_gc_is_tracked(op) && plus_granules_add(&graph->unlisted, op) < 0) {
        return -ENOMEM;
    }
    graph->total_objects++;
    graph->total_bytes += (uint64_t)bytes;
    if (origin == PLUS_HEAP_REFERRED && parent != NULL && plus_gc_objects_is_sole(op) &&
        !plus_referents_possible(op) && is_small_value(op, bytes)) {
        uint32_t holder = node_of(it, parent);
        if (holder != PLUS_NO_NODE) {
            graph->bytes[holder] += (uint64_t)bytes;
            graph->members[holder]++;
            return 0;
        }
    }
    return add_node(graph, op, (uint64_t)bytes) == PLUS_NO_NODE ? -ENOMEM : 0;
}

static int
count_frames(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct plus_heap_graph *graph = arg;

    (void)code, (void)value;
    graph->frames += index < 0;
    return 0;
}

static int
note_frame(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct building *it = arg;

    (void)value;
    if (index < 0) {
        it->graph->codes[it->frame++] = code;
    }
    return 0;
}

static int
number_all(struct building *it)
{
    struct plus_heap_graph *graph = it->graph;
    const struct plus_heap_visitor visitor = {number, NULL, it};

    plus_live_frames_ask_unnamed();
    if (plus_greenlets_note() < 0) {
        return -ENOMEM;
    }
    (void)plus_live_frames_visit(count_frames, graph);
    graph->codes = plus_calloc((size_t)graph->frames + 1, sizeof(PyCodeObject *));
    if (graph->codes == NULL) {
        return -ENOMEM;
    }
    (void)plus_live_frames_visit(note_frame, it);
    for (uint32_t i = 0; i <= graph->frames; i++) {
        if (add_node(graph, NULL, 0) == PLUS_NO_NODE) {
            return -ENOMEM;
        }
    }
    return plus_heap_walk(&visitor, NULL);
}

/* ---- edges ---------------------------------------------------------------------------------------- */

int
plus_heap_graph_add_edge(struct plus_heap_graph *graph, uint32_t from, uint32_t to)
{
    if (graph->pair_count == graph->pair_room) {
        size_t room = graph->pair_room > 0 ? graph->pair_room + graph->pair_room / 2 : 1 << 16;

        if (resize((void **)&graph->pairs, 2 * room, sizeof *graph->pairs) < 0) {
            return -ENOMEM;
        }
        graph->pair_room = room;
    }
    graph->pairs[2 * graph->pair_count] = from;
    graph->pairs[2 * graph->pair_count + 1] = to;
    graph->pair_count++;
    graph->in_count[to]++;
    return 0;
}

static int
connect(PyObject *from, PyObject *to, void *arg)
{
    struct building *it = arg;
    uint32_t target = plus_heap_graph_node(it->graph, to);
    uint32_t source = target == PLUS_NO_NODE ? PLUS_NO_NODE : node_of(it, from);

    return source == PLUS_NO_NODE ? 0 : plus_heap_graph_add_edge(it->graph, source, target);
}

static int
connect_variable(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct building *it = arg;

    (void)code;
    if (index < 0) {
        it->frame++;
        return 0;
    }
    uint32_t target = plus_heap_graph_node(it->graph, value);

    return target == PLUS_NO_NODE ? 0 : plus_heap_graph_add_edge(it->graph, it->frame, target);
}

/* Sort the pairs into rows. */
static int
sort_edges(struct plus_heap_graph *graph)
{
    size_t nodes = graph->edges.count, *first = plus_calloc(nodes + 2, sizeof *first);
    uint32_t *target = plus_malloc((graph->pair_count + 1) * sizeof *target);

    graph->edges.first = first;
    graph->edges.target = target;
    if (first == NULL || target == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < graph->pair_count; i++) {
        first[graph->pairs[2 * i] + 2]++;
    }
    for (size_t i = 2; i <= nodes; i++) {
        first[i] += first[i - 1];
    }
    for (size_t i = 0; i < graph->pair_count; i++) {
        target[first[graph->pairs[2 * i] + 1]++] = graph->pairs[2 * i + 1];
    }
    plus_free(graph->pairs);
    graph->pairs = NULL;
    return 0;
}

static int
connect_all(struct building *it)
{
    struct plus_heap_graph *graph = it->graph;
    const struct plus_heap_visitor visitor = {NULL, connect, it};

    graph->in_count = plus_calloc(graph->edges.count, sizeof *graph->in_count);
    if (graph->in_count == NULL) {
        return -ENOMEM;
    }
    it->frame = 0;
    int status = plus_live_frames_visit(connect_variable, it);

    it->last = NULL;
    if (status == 0) {
        status = plus_heap_walk(&visitor, NULL);
    }
    return status;
}

/* ---- roots ---------------------------------------------------------------------------------------- */

static int
add_modules(struct plus_heap_graph *graph)
{
    PyObject *modules = PyImport_GetModuleDict(), *name, *module;
    Py_ssize_t position = 0;
    int status = 0;

    while (status == 0 && PyDict_CheckExact(modules) &&
           PyDict_Next(modules, &position, &name, &module)) {
        uint32_t node = PyModule_Check(module) ? plus_heap_graph_node(graph, module) : PLUS_NO_NODE;
        status = node == PLUS_NO_NODE ? 0 : plus_roots_add(&graph->roots, node);
    }
    return status;
}

bool
plus_heap_graph_is_held(const struct plus_heap_graph *graph, uint32_t node)
{
    Py_ssize_t references = plus_gc_objects_references(graph->objects[node]);

    return references == PLUS_REFERENCES_UNKNOWN ? graph->in_count[node] == 0
                                                 : (uint64_t)references > graph->in_count[node];
}

#define RANKS 3

/* The rank of an object as a root of a cycle.  The most telling comes first: a function or an instance of the program's
 * classes; then other objects; then cells and tuples. */
static uint8_t
rank_of(const PyObject *op)
{
    PyTypeObject *type = op == NULL ? NULL : Py_TYPE(op);

    if (type == NULL || PyCell_Check(op) || PyTuple_CheckExact(op)) {
        return 2;
    }
    return type == &PyFunction_Type || PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? 0 : 1;
}

static int
reach_all(struct plus_heap_graph *graph)
{
    uint8_t *rank = plus_malloc(graph->edges.count);
    int status = -ENOMEM;

    graph->held = graph->roots.count;
    if (rank != NULL) {
        for (uint32_t node = 0; node < graph->edges.count; node++) {
            rank[node] = rank_of(graph->objects[node]);
        }
        status = plus_graph_reach_all(&graph->edges, &graph->roots, rank, RANKS);
    }
    plus_free(rank);
    return status;
}

static int
find_roots(struct plus_heap_graph *graph)
{
    int status = add_modules(graph);

    graph->modules = graph->roots.count;
    for (uint32_t node = 1; node <= graph->frames && status == 0; node++) {
        status = plus_roots_add(&graph->roots, node);
    }
    graph->framed = graph->roots.count;
    const struct plus_keeper *keeper;
    for (size_t at = 0;
         status == 0 && (keeper = plus_record_table_next(&graph->keepers, &at)) != NULL;) {
        status = keeper->many
                     ? 0
                     : plus_roots_add(&graph->roots, plus_heap_graph_node(graph, keeper->op));
    }
    graph->named = graph->roots.count;
    for (uint32_t node = graph->frames + 1; node < graph->edges.count && status == 0; node++) {
        if (plus_heap_graph_is_held(graph, node)) {
            keeper = plus_record_table_find(&graph->keepers, graph->objects[node]);
            status = keeper == NULL || keeper->many ? plus_roots_add(&graph->roots, node) : 0;
        }
    }
    return status < 0 ? status : reach_all(graph);
}

/* ---- entry point ---------------------------------------------------------------------------------- */

int
plus_heap_graph_build(struct plus_heap_graph *graph, const struct plus_arenas *arenas,
                      size_t pooled)
{
    struct building it = {
        .graph = graph, .arenas = arenas, .types = PLUS_RECORD_TABLE(struct measured)};

    *graph = (struct plus_heap_graph){.keepers = PLUS_RECORD_TABLE(struct plus_keeper),
                                      .left = PLUS_RECORD_TABLE(struct plus_left),
                                      .pooled = pooled};
    int status = number_all(&it);

    if (status == 0) {
        status = connect_all(&it);
    }
    plus_record_table_clear(&it.types);
    return status;
}

int
plus_heap_graph_finish(struct plus_heap_graph *graph)
{
    int status = sort_edges(graph);

    return status < 0 ? status : find_roots(graph);
}

struct wanted {
    uint32_t frame, at;
    const PyObject *op;
    PyObject *name;
};

static int
match_variable(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct wanted *wanted = arg;

    if (index < 0) {
        wanted->at++;
    }
    else if (wanted->at == wanted->frame && value == wanted->op && index < code->co_nlocalsplus) {
        wanted->name = PyTuple_GET_ITEM(code->co_localsplusnames, index);
    }
    return wanted->name != NULL;
}

PyObject *
plus_heap_graph_variable(uint32_t frame, const PyObject *op)
{
    struct wanted wanted = {.frame = frame, .op = op};

    (void)plus_live_frames_visit(match_variable, &wanted);
    return wanted.name;
}
