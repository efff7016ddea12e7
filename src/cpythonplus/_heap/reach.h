/* The shortest path to each object, and the memory that would be freed with it. */
#pragma once

#include "heap_graph.h"

#define PLUS_GARBAGE 0 /* the anchor of all unreachable objects */

/* A graph and the results of the search. */
struct plus_reach {
    struct plus_heap_graph *graph;
    const struct plus_arenas *arenas; /* pymalloc's; may be empty */
    uint32_t *idom, *order, reached;
    uint64_t *kept; /* bytes that would be freed with a node */
    /* Nodes in the order of their distance from the roots, one group of roots after the other. */
    uint32_t *queue;
    uint32_t *parent; /* on a shortest path from a root; PLUS_NO_NODE for a root */
    /* The first node on the shortest path that is no namespace, or the last node if all are. */
    uint32_t *anchor;
    uint64_t *reached_bytes; /* of the node and all nodes whose shortest path leads through it */
    uint32_t *reached_objects;
    size_t *first_child; /* nodes with a given parent; for node 0, the roots */
    uint32_t *child;
};

/* 0, or -ENOMEM. */
int
plus_reach_find(struct plus_reach *owners, struct plus_heap_graph *graph,
                const struct plus_arenas *arenas);

/* True for a module, a class, a frame, or the dict of names of one. */
bool
plus_reach_is_namespace(const struct plus_reach *owners, uint32_t node);
