/* What is reached through what, and what would be freed with it. */
#ifndef PLUS_MEMORY_REACH_H
#define PLUS_MEMORY_REACH_H

#include "heap_graph.h"

#define PLUS_GARBAGE 0 /* the anchor of all that nobody leads to */

/* A graph with what follows from it. */
struct plus_reach {
    struct plus_heap_graph *graph;
    const struct plus_arenas *arenas; /* pymalloc's, or none */
    uint32_t *idom, *order, reached;
    uint64_t *kept; /* bytes that would be freed with a node */
    uint32_t *
        queue; /* nodes in the order of their distance from the roots, one group of these after the other */
    uint32_t *parent; /* on a shortest path from a root; PLUS_NO_NODE: it is one */
    uint32_t *anchor; /* the first on that path that is no namespace, or the last if all are */
    uint64_t *reached_bytes; /* of all whose shortest path leads through a node, and of itself */
    uint32_t *reached_objects;
    size_t *first_child; /* nodes whose parent a node is; of node 0, the roots */
    uint32_t *child;
};

/* 0, or -ENOMEM. */
int
plus_reach_find(struct plus_reach *owners, struct plus_heap_graph *graph,
                const struct plus_arenas *arenas);

/* A module, a class, a frame, or the names of one. */
bool
plus_reach_is_namespace(const struct plus_reach *owners, uint32_t node);

#endif
