/* Strongly connected components of a directed graph.  Knows nothing of Python; no state, any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Node i's edges are target[first[i]] to target[first[i + 1]]; first has count + 1 entries. */
struct plus_graph {
    uint32_t count;
    const size_t *first;
    const uint32_t *target;
};

/* Fill component[i] for each node: numbers from 0; a component's number is lower than those of all components that
 * reach it.  Returns the number of components, or -ENOMEM.  Time and memory grow with nodes and edges; the C stack does
 * not. */
int64_t
plus_graph_components(const struct plus_graph *graph, uint32_t *component);
