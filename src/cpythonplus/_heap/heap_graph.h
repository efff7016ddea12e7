/* All objects as nodes of a graph, and their references as its edges.
 *
 * Node 0 is what all others hang from.  Then come the frames that are being executed, and then the objects.  An object that
 * refers to nothing, and that one other refers to alone, is no node: it counts with that one.
 *
 * The GIL must be held, and stays so.  Makes no object; takes some 100 bytes a node, of copy_memory.h, which are not given back:
 * to be used in a copy of the process (heap_copy.h). */
#ifndef PLUS_MEMORY_HEAP_GRAPH_H
#define PLUS_MEMORY_HEAP_GRAPH_H

#include "../_base/compat.h"
#include "../_base/memory/granules.h"
#include "../_base/memory/record_table.h"
#include "../_interp/objects/arenas.h"
#include "dominators.h"

/* An object that the interpreter holds, by the call that has given it. */
struct plus_keeper {
    PyObject *op;
    const char *by;       /* stays */
    unsigned long number; /* of a signal; threading.get_ident() of a thread; 0 */
    bool many;            /* it may be one of many: such are told together, as what C code holds */
};

struct plus_heap_graph {
    struct plus_graph edges;
    uint32_t frames;      /* nodes 1 to `frames` */
    PyCodeObject **codes; /* of frame i: codes[i - 1] */
    PyObject **objects;   /* NULL: node 0 and frames */
    uint64_t *bytes;
    uint32_t *members; /* objects that count with a node, itself too */
    struct plus_roots roots;
    /* So many of the roots are modules; then frames; then what the interpreter holds; then what others hold; then what nobody
     * leads to. */
    size_t modules, framed, named, held;
    struct plus_record_table keepers; /* of struct plus_keeper, by object */
    uint64_t total_objects, total_bytes;
    uint64_t large_bytes;          /* of blocks above 512 bytes, which pymalloc leaves to malloc */
    uint64_t small_bytes;          /* of those in pymalloc's arenas, as it rounds them up */
    struct plus_granules unlisted; /* all objects that the collector does not know, nodes or not */
    /* Its own. */
    uint32_t *slots;
    size_t mask, capacity;
    uint32_t *pairs; /* from, to */
    size_t pair_count, pair_room;
    uint32_t *in_count;
};

/* Nodes, and edges as far as tp_traverse tells them.  arenas: pymalloc's, or none.  0, or -ENOMEM. */
int
plus_heap_graph_build(struct plus_heap_graph *graph, const struct plus_arenas *arenas);

/* One more edge.  0, or -ENOMEM. */
int
plus_heap_graph_add_edge(struct plus_heap_graph *graph, uint32_t from, uint32_t to);

/* Behind the last edge and the last keeper: finds the roots.  0, or -ENOMEM. */
int
plus_heap_graph_finish(struct plus_heap_graph *graph);

/* Whether somebody beside the objects that were found holds it. */
bool
plus_heap_graph_is_held(const struct plus_heap_graph *graph, uint32_t node);

/* The node of an object; PLUS_NO_NODE: it has none. */
uint32_t
plus_heap_graph_node(const struct plus_heap_graph *graph, const PyObject *op);

/* The name of a variable of a frame's node that holds an object, borrowed, or NULL. */
PyObject *
plus_heap_graph_variable(uint32_t frame, const PyObject *op);

#endif
