/* Dominators of random graphs against their definition: a node dominates what cannot be reached without it. */
#include "_heap/dominators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 14
#define GRAPHS 20000

static uint32_t seed;

static uint32_t
below(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

static void
reach(const struct plus_graph *graph, const struct plus_roots *roots, uint32_t without, bool *met)
{
    uint32_t stack[NODES], depth = 0;

    memset(met, 0, NODES * sizeof *met);
    for (size_t i = 0; i < roots->count; i++) {
        if (roots->nodes[i] != without && !met[roots->nodes[i]]) {
            met[roots->nodes[i]] = true;
            stack[depth++] = roots->nodes[i];
        }
        while (depth > 0) {
            uint32_t node = stack[--depth];
            for (size_t at = graph->first[node]; at < graph->first[node + 1]; at++) {
                uint32_t target = graph->target[at];
                if (target != without && !met[target]) {
                    met[target] = true;
                    stack[depth++] = target;
                }
            }
        }
    }
}

/* The strict dominator that has most dominators itself. */
static uint32_t
nearest(bool dominates[NODES][NODES], uint32_t nodes, uint32_t node)
{
    uint32_t best = 0, most = 0;

    for (uint32_t each = 1; each < nodes; each++) {
        uint32_t count = 0;
        for (uint32_t i = 1; i < nodes; i++) {
            count += dominates[i][each];
        }
        if (each != node && dominates[each][node] && count > most) {
            best = each;
            most = count;
        }
    }
    return best;
}

static int
check(uint32_t number)
{
    size_t first[NODES + 1], edges = 0;
    uint32_t target[4 * NODES], idom[NODES], order[NODES], reached, nodes;
    uint8_t rank[NODES];
    struct plus_roots roots = {NULL, 0, 0};
    bool dominates[NODES][NODES];

    seed = number;
    nodes = 2 + below(NODES - 2);
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t count = node == 0 ? 0 : below(4);
        first[node] = edges;
        rank[node] = (uint8_t)below(3);
        while (count-- > 0) {
            target[edges++] = 1 + below(nodes - 1);
        }
    }
    first[nodes] = edges;
    struct plus_graph graph = {nodes, first, target};

    for (uint32_t count = below(3); count > 0; count--) {
        plus_roots_add(&roots, 1 + below(nodes - 1));
    }
    size_t given = roots.count;

    if (plus_graph_reach_all(&graph, &roots, rank, 3) != 0 ||
        plus_graph_dominators(&graph, &roots, idom, order, &reached) != 0 || reached != nodes) {
        printf("graph %u: not all are reached\n", (unsigned)number);
        return 1;
    }
    for (size_t i = given; i < roots.count; i++) { /* the last one in its place */
        struct plus_roots others = {roots.nodes, roots.count - 1, 0};
        uint32_t added = roots.nodes[i], last = roots.nodes[roots.count - 1];
        bool met[NODES];

        roots.nodes[i] = last;
        reach(&graph, &others, 0, met);
        roots.nodes[i] = added;
        if (met[added]) {
            printf("graph %u: root %u is led to\n", (unsigned)number, (unsigned)added);
            return 1;
        }
    }
    for (uint32_t each = 1; each < nodes; each++) {
        bool met[NODES];
        reach(&graph, &roots, each, met);
        for (uint32_t node = 1; node < nodes; node++) {
            dominates[each][node] = each == node || !met[node];
        }
    }
    for (uint32_t node = 1; node < nodes; node++) {
        if (idom[node] != nearest(dominates, nodes, node)) {
            printf("graph %u: node %u\n", (unsigned)number, (unsigned)node);
            return 1;
        }
    }
    free(roots.nodes);
    return 0;
}

int
main(void)
{
    int failed = 0;

    for (uint32_t number = 0; number < GRAPHS && !failed; number++) {
        failed = check(number);
    }
    return failed;
}
