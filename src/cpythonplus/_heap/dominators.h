/* Which node of a directed graph all ways to another one lead through.  Knows nothing of Python; no state, any thread. */
#ifndef PLUS_MEMORY_DOMINATORS_H
#define PLUS_MEMORY_DOMINATORS_H

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

/* Adds nodes until the roots lead to all of the graph but node 0: of those that they do not lead to yet the first with the
 * least rank, and so on; ranks are below `ranks`.  No node that is added leads to another one.  0, or -ENOMEM. */
int
plus_graph_reach_all(const struct plus_graph *graph, struct plus_roots *roots, const uint8_t *rank,
                     uint8_t ranks);

/* Immediate dominators, where node 0 leads to all roots and to nothing else: the graph's edges of node 0 are not looked at.
 * idom[v]: the last node that every way from 0 to v leads through; of 0, PLUS_NO_NODE.  order: all that were reached, each
 * behind its dominator; `*reached` is their number.  Time grows with edges, times the logarithm of nodes; memory is 28 bytes
 * a node; the C stack does not grow.  0, or -ENOMEM.
 *
 * The algorithm is that of T. Lengauer and R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph", ACM
 * TOPLAS 1 (1979), in its simple form: ways are compressed, trees are not balanced. */
int
plus_graph_dominators(const struct plus_graph *graph, const struct plus_roots *roots,
                      uint32_t *idom, uint32_t *order, uint32_t *reached);

#endif
