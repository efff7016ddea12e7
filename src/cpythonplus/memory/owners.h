/* Who keeps how much of the heap, and what has grown since an earlier look. */
#ifndef PLUS_MEMORY_OWNERS_H
#define PLUS_MEMORY_OWNERS_H

#include "../_interp/arenas.h"
#include "heap_graph.h"

/* A graph with what follows from it. */
struct plus_owners {
    struct plus_heap_graph *graph;
    const struct plus_arenas *arenas; /* pymalloc's, or none */
    uint32_t *idom, *order, reached;
    uint64_t *kept; /* bytes that would be freed with a node */
    uint32_t *
        queue; /* nodes in the order of their distance from the roots, one group of these after the other */
    uint32_t *parent;        /* on a shortest path from a root; PLUS_NO_NODE: it is one */
    uint32_t *anchor;        /* the first on that path that is no namespace */
    uint64_t *reached_bytes; /* of all whose shortest path leads through a node, and of itself */
    uint32_t *reached_objects;
    size_t *first_child; /* nodes whose parent a node is; of node 0, the roots */
    uint32_t *child;
};

/* 0, or -ENOMEM. */
int
plus_owners_find(struct plus_owners *owners, struct plus_heap_graph *graph,
                 const struct plus_arenas *arenas);

/* What is told of a look to a later one: a block from malloc; NULL: no memory. */
void *
plus_owners_mark(const struct plus_owners *owners, size_t *bytes);

/* A new dict of plain data (owners_py.c says of what); NULL with an exception.  before: a mark, or NULL.  least: bytes
 * from which on something is told.  asked: a class that is told in any case, or NULL. */
PyObject *
plus_owners_report(const struct plus_owners *owners, const void *before, size_t before_bytes,
                   uint64_t least, const PyTypeObject *asked);

#endif
