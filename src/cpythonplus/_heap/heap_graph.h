/* All objects as nodes of a graph, and their references as its edges.
 *
 * Node 0 is the parent of all roots.  Then come the frames that are being executed, those of suspended greenlets
 * included, and then the objects.  A small string, number or the like to which only one object refers is no node: it
 * counts with that object.
 *
 * The GIL must be held, and stays so.  Makes no object; takes about 100 bytes a node from copy_memory.h, which are not
 * freed: for use in a copy of the process (heap_copy.h). */
#pragma once

#include "../_base/compat.h"
#include "../_base/memory/granules.h"
#include "../_base/memory/record_table.h"
#include "../_interp/objects/arenas.h"
#include "dominators.h"

/* An object that the interpreter holds, and the call that gave it. */
struct plus_keeper {
    PyObject *op;
    const char *by;       /* a static string */
    unsigned long number; /* of a signal; threading.get_ident() of a thread; 0 */
    /* True if the interpreter may hold many objects of this kind: they are reported in one row, like objects that C
     * code holds. */
    bool many;
};

/* An object that no walk meets (left.h). */
struct plus_left {
    const void *object;
    PyTypeObject *type;
    uint64_t bytes, large_bytes;    /* large_bytes: of blocks from malloc, among them */
    const struct plus_left *holder; /* a left object that refers to it, or NULL */
    uint32_t node;                  /* an object of C code that refers to it; 0: none */
    bool is_cached;                 /* by the interpreter itself */
};

struct plus_heap_graph {
    struct plus_graph edges;
    uint32_t frames;      /* nodes 1 to `frames` */
    PyCodeObject **codes; /* code of frame i: codes[i - 1] */
    PyObject **objects;   /* NULL for node 0 and frames */
    uint64_t *bytes;
    uint32_t *members; /* the number of objects that count with a node, including itself */
    struct plus_roots roots;
    /* Ends of the groups of roots: modules; then frames; then objects that the interpreter holds; then objects that are
     * held otherwise.  The rest are unreachable. */
    size_t modules, framed, named, held;
    struct plus_record_table keepers; /* of struct plus_keeper, by object */
    uint64_t total_objects, total_bytes;
    size_t pooled;        /* blocks of up to so many bytes are pymalloc's, larger ones malloc's */
    uint64_t large_bytes; /* of malloc's blocks, as glibc rounds them up */
    uint64_t small_bytes; /* of blocks in pymalloc's arenas, as it rounds them up */
    struct plus_granules unlisted; /* all objects that the collector does not track, nodes or not */
    struct plus_record_table left; /* of struct plus_left, by object */
    /* Private. */
    uint32_t *slots;
    size_t mask, capacity;
    uint32_t *pairs; /* from, to */
    size_t pair_count, pair_room;
    uint32_t *in_count;
};

/* Make a node for each object of the heap, and edges for the references that tp_traverse visits. arenas: pymalloc's;
 * may be empty. pooled: 0 if Python takes all blocks from malloc.  0, or -ENOMEM. */
int
plus_heap_graph_build(struct plus_heap_graph *graph, const struct plus_arenas *arenas,
                      size_t pooled);

/* Add an edge.  0, or -ENOMEM. */
int
plus_heap_graph_add_edge(struct plus_heap_graph *graph, uint32_t from, uint32_t to);

/* Find the roots, after the last edge and the last keeper.  0, or -ENOMEM. */
int
plus_heap_graph_finish(struct plus_heap_graph *graph);

/* True if the object has a reference from outside the objects that were found. */
bool
plus_heap_graph_is_held(const struct plus_heap_graph *graph, uint32_t node);

/* True for a class of C code, or one derived from it, whose instances are compared by identity: they may have memory
 * that only C code knows.  May make a class, once. */
bool
plus_is_class_of_c_code(const PyTypeObject *type);

/* The node of an object; PLUS_NO_NODE if it has none. */
uint32_t
plus_heap_graph_node(const struct plus_heap_graph *graph, const PyObject *op);

/* The name of a variable of a frame's node that refers to the object, borrowed, or NULL. */
PyObject *
plus_heap_graph_variable(uint32_t frame, const PyObject *op);
