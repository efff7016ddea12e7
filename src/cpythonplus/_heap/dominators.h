/* Dominators of a directed graph: the nodes that all paths to another node lead through.  Knows nothing of Python; no
 * state, any thread. */
#pragma once

#include "graph.h"

#include <stdbool.h>

#define PLUS_NO_NODE UINT32_MAX

struct plus_roots {
    uint32_t *nodes;
    size_t count, capacity;
};

/* 0, or -ENOMEM. */
int
plus_roots_add(struct plus_roots *roots, uint32_t node);

/* Add roots until they lead to all nodes but node 0.  The next root is the first unreached node of the least rank;
 * ranks are below `ranks`.  No added root leads to another added root.  0, or -ENOMEM. */
int
plus_graph_reach_all(const struct plus_graph *graph, struct plus_roots *roots, const uint8_t *rank,
                     uint8_t ranks);

/* Immediate dominators in the graph in which node 0 leads to all roots and to no other node: the graph's own edges of
 * node 0 are ignored. idom[v]: the last node before v on every path from 0 to v; PLUS_NO_NODE for node 0. order: all
 * reached nodes, each after its dominator; `*reached` is their number.  Time is proportional to edges times the
 * logarithm of nodes; memory is 28 bytes a node; the C stack does not grow.  0, or -ENOMEM.
 *
 * The algorithm is that of T. Lengauer and R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph",
 * ACM TOPLAS 1 (1979), in its simple form: paths are compressed, trees are not balanced. */
int
plus_graph_dominators(const struct plus_graph *graph, const struct plus_roots *roots,
                      uint32_t *idom, uint32_t *order, uint32_t *reached);
