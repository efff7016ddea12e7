/* Breadth-first search from named roots to unreachable objects, with these distances:
 *
 *     modules, their names, classes and their names      0
 *     objects that a module's C code keeps               C_STATE
 *     objects that a module has imported                 IMPORTED: so that an object is named by its home
 *     any other reference                                1
 *
 * The values of a WeakKeyDictionary are followed after all other paths from modules: an entry does not keep its key
 * alive, so it names only what nothing else leads to, as a key that its own value refers to.  Frames come later, as a
 * function that works on all the keys leads to them for a moment.
 *
 * No memory is freed: this works in a copy of the process that ends.
 */
#include "reach.h"

#include <errno.h>
#include <string.h>

#include "../_base/memory/copy_memory.h"
#include "../_interp/objects/layouts.h"
#include "binding.h"

#define IMPORTED 3
#define C_STATE 2
#define FARTHEST IMPORTED

static uint32_t
above(const struct plus_reach *owners, uint32_t node)
{
    return owners->parent[node] == PLUS_NO_NODE ? 0 : owners->parent[node];
}

static void
add_reached(struct plus_reach *owners)
{
    const struct plus_heap_graph *graph = owners->graph;

    for (uint32_t i = graph->edges.count - 1; i-- > 0;) {
        uint32_t node = owners->queue[i];
        owners->reached_bytes[node] += graph->bytes[node];
        owners->reached_objects[node] += graph->members[node];
        owners->reached_bytes[above(owners, node)] += owners->reached_bytes[node];
        owners->reached_objects[above(owners, node)] += owners->reached_objects[node];
    }
}

static int
find_children(struct plus_reach *owners)
{
    uint32_t nodes = owners->graph->edges.count;

    owners->first_child = plus_calloc((size_t)nodes + 2, sizeof *owners->first_child);
    owners->child = plus_malloc((size_t)nodes * sizeof *owners->child);
    if (owners->first_child == NULL || owners->child == NULL) {
        return -ENOMEM;
    }
    for (uint32_t node = 1; node < nodes; node++) {
        owners->first_child[above(owners, node) + 2]++;
    }
    for (size_t i = 2; i <= nodes; i++) {
        owners->first_child[i] += owners->first_child[i - 1];
    }
    for (uint32_t node = 1; node < nodes; node++) {
        owners->child[owners->first_child[above(owners, node) + 1]++] = node;
    }
    return 0;
}

bool
plus_reach_is_namespace(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint32_t holder = owners->parent[node];
    PyObject *op = graph->objects[node];

    if (op == NULL || PyModule_Check(op) || PyType_Check(op)) {
        return true;
    }
    PyObject *owner = holder == PLUS_NO_NODE ? NULL : graph->objects[holder];

    return owner != NULL && PyDict_CheckExact(op) &&
           ((PyModule_Check(owner) && PyModule_GetDict(owner) == op) ||
            (PyType_Check(owner) && plus_class_dict((PyTypeObject *)owner) == op));
}

/* ---- shortest paths --------------------------------------------------------------------------------- */

/* Nodes at one distance.  A node stays in its bucket when a shorter distance is found. */
struct bucket {
    uint32_t *nodes;
    size_t count, room;
};

struct search {
    struct plus_reach *owners;
    uint32_t *distance; /* UINT32_MAX if not met */
    bool *done;
    struct bucket buckets[FARTHEST + 1]; /* for distance d, number d modulo the length */
    struct bucket weakly_keyed;          /* the dicts that are left for later */
    bool is_late;
};

static int
add(struct bucket *bucket, uint32_t node)
{
    uint32_t *nodes =
        plus_room_for_one(bucket->nodes, bucket->count, &bucket->room, 1024, sizeof *nodes);

    if (nodes == NULL) {
        return -ENOMEM;
    }
    bucket->nodes = nodes;
    bucket->nodes[bucket->count++] = node;
    return 0;
}

static int
meet(struct search *search, uint32_t node, uint32_t holder, uint32_t distance)
{
    if (search->done[node] || search->distance[node] <= distance) {
        return 0;
    }
    search->distance[node] = distance;
    search->owners->parent[node] = holder;
    return add(&search->buckets[distance % (FARTHEST + 1)], node);
}

/* True if an object says that it comes from another module than the one that has it among its names. */
static bool
is_stranger(PyObject *op, PyObject *module_name)
{
    PyTypeObject *type = PyType_Check(op) ? (PyTypeObject *)op : Py_TYPE(op);
    PyObject *home = NULL;

    if (PyFunction_Check(op)) {
        home = PyFunction_GET_MODULE(op);
    }
    else if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        home = plus_dict_item(plus_class_dict(type), "__module__");
    }
    return home != NULL && module_name != NULL && PyUnicode_CheckExact(home) &&
           PyUnicode_CheckExact(module_name) && PyUnicode_Compare(home, module_name) != 0;
}

/* The distance from one object to another.  The names of a module or a class are part of it.  An imported object
 * belongs to its home module, and objects that a module's C code keeps come after its names. */
static uint32_t
step_length(const struct plus_reach *owners, uint32_t from, uint32_t to)
{
    PyObject *source = owners->graph->objects[from], *target = owners->graph->objects[to];
    uint32_t holder = owners->parent[from];
    PyObject *module = holder == PLUS_NO_NODE ? NULL : owners->graph->objects[holder];

    if (source == NULL) {
        return 1;
    }
    if (PyModule_Check(source)) {
        return PyModule_GetDict(source) == target ? 0 : C_STATE;
    }
    if (PyType_Check(source)) {
        return plus_class_dict((PyTypeObject *)source) == target ? 0 : 1;
    }
    return module != NULL && PyModule_Check(module) && PyModule_GetDict(module) == source &&
                   is_stranger(target, plus_dict_item(source, "__name__"))
               ? IMPORTED
               : 1;
}

/* True for the dict of a WeakKeyDictionary. */
static bool
is_weakly_keyed(PyObject *op)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;

    return op != NULL && PyDict_CheckExact(op) && PyDict_Next(op, &position, &key, &value) &&
           PyWeakref_CheckRefExact(key);
}

static int
leave(struct search *search, uint32_t node)
{
    const struct plus_graph *edges = &search->owners->graph->edges;
    int status = 0;

    if (!search->is_late && is_weakly_keyed(search->owners->graph->objects[node])) {
        return add(&search->weakly_keyed, node);
    }
    for (size_t at = edges->first[node]; at < edges->first[node + 1] && status == 0; at++) {
        uint32_t target = edges->target[at];
        if (!search->done[target]) {
            status = meet(search, target, node,
                          search->distance[node] + step_length(search->owners, node, target));
        }
    }
    return status;
}

/* Search from one group of roots; 0, or -ENOMEM.  Nearer nodes come first, and at one distance those that were met
 * first. */
static int
find_paths_from(struct search *search, bool is_garbage, uint32_t *tail)
{
    struct plus_reach *owners = search->owners;
    int status = 0;

    for (uint32_t distance = 0, empty = 0; empty <= FARTHEST && status == 0; distance++) {
        struct bucket *bucket = &search->buckets[distance % (FARTHEST + 1)];
        empty = bucket->count == 0 ? empty + 1 : 0;
        for (size_t i = 0; i < bucket->count && status == 0; i++) {
            uint32_t node = bucket->nodes[i], holder = owners->parent[node];
            if (search->done[node] || search->distance[node] != distance) {
                continue;
            }
            search->done[node] = true;
            owners->queue[(*tail)++] = node;
            /* A class in a list has no name of its own, nor has its namespace. */
            bool is_named = holder == PLUS_NO_NODE || (plus_reach_is_namespace(owners, holder) &&
                                                       owners->anchor[holder] == holder);
            owners->anchor[node] = is_garbage ? PLUS_GARBAGE
                                   : is_named ? node
                                              : owners->anchor[holder];
            status = leave(search, node);
        }
        bucket->count = 0;
    }
    return status;
}

/* Search from the dicts that were left for later. */
static int
find_late_paths(struct search *search, uint32_t *tail)
{
    int status = 0;

    search->is_late = true;
    for (size_t i = 0; i < search->weakly_keyed.count && status == 0; i++) {
        uint32_t node = search->weakly_keyed.nodes[i];
        search->distance[node] = 0;
        status = leave(search, node);
    }
    return status < 0 ? status : find_paths_from(search, false, tail);
}

/* Search from one group of roots after the other. */
static int
find_paths(struct plus_reach *owners)
{
    const struct plus_heap_graph *graph = owners->graph;
    const struct plus_roots *roots = &graph->roots;
    size_t ends[] = {graph->modules, graph->framed, graph->named, graph->held, roots->count};
    size_t begin = 0, groups = sizeof ends / sizeof ends[0];
    struct search search = {.owners = owners};
    uint32_t tail = 0;
    int status = 0;

    search.done = plus_calloc(graph->edges.count, sizeof *search.done);
    search.distance = plus_malloc(graph->edges.count * sizeof *search.distance);
    if (search.done == NULL || search.distance == NULL) {
        return -ENOMEM;
    }
    memset(search.distance, 0xff, graph->edges.count * sizeof *search.distance);
    for (size_t group = 0; group < groups && status == 0; begin = ends[group++]) {
        for (size_t i = begin; i < ends[group] && status == 0; i++) {
            status = meet(&search, roots->nodes[i], PLUS_NO_NODE, 0);
        }
        if (status == 0) {
            status = find_paths_from(&search, group == groups - 1, &tail);
        }
        if (status == 0 && group == 0) {
            status = find_late_paths(&search, &tail);
        }
    }
    return status;
}

int
plus_reach_find(struct plus_reach *owners, struct plus_heap_graph *graph,
                const struct plus_arenas *arenas)
{
    size_t nodes = graph->edges.count;

    *owners = (struct plus_reach){.graph = graph, .arenas = arenas};
    owners->idom = plus_malloc(nodes * sizeof(uint32_t));
    owners->order = plus_malloc(nodes * sizeof(uint32_t));
    owners->kept = plus_calloc(nodes, sizeof(uint64_t));
    owners->queue = plus_malloc(nodes * sizeof(uint32_t));
    owners->reached_bytes = plus_calloc(nodes, sizeof(uint64_t));
    owners->reached_objects = plus_calloc(nodes, sizeof(uint32_t));
    owners->parent = plus_malloc(nodes * sizeof(uint32_t));
    owners->anchor = plus_malloc(nodes * sizeof(uint32_t));
    if (owners->idom == NULL || owners->order == NULL || owners->kept == NULL ||
        owners->queue == NULL || owners->reached_bytes == NULL || owners->reached_objects == NULL ||
        owners->parent == NULL || owners->anchor == NULL) {
        return -ENOMEM;
    }
    int status = plus_graph_dominators(&graph->edges, &graph->roots, owners->idom, owners->order,
                                       &owners->reached);

    if (status == 0) {
        for (uint32_t i = owners->reached; i-- > 1;) {
            uint32_t node = owners->order[i];
            owners->kept[node] += owners->graph->bytes[node];
            owners->kept[owners->idom[node]] += owners->kept[node];
        }
        status = find_paths(owners);
    }
    if (status == 0) {
        add_reached(owners);
        status = find_children(owners);
    }
    return status;
}
