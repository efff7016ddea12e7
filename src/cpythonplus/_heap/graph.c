/* Tarjan's algorithm (SIAM J. Comput. 1, 1972, 146-160), with a stack of its own instead of recursion: cyclic garbage
 * may be a chain of a million objects. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>

#define UNSEEN UINT32_MAX

struct walk {
    const struct plus_graph *graph;
    uint32_t *component;
    uint32_t *low;  /* lowest number reachable so far; UNSEEN: not visited */
    uint32_t *open; /* nodes of an unknown component, in order of discovery */
    uint32_t *path; /* nodes from the root to the current one */
    size_t *next;   /* by node: its next edge to follow */
    uint32_t opened, depth, numbered, components;
};

static void
enter(struct walk *walk, uint32_t node)
{
    /* While the component is unknown, the array holds the node's own number. */
    walk->component[node] = walk->low[node] = walk->numbered++;
    walk->next[node] = walk->graph->first[node];
    walk->open[walk->opened++] = node;
    walk->path[walk->depth++] = node;
}

static void
close_component(struct walk *walk, uint32_t root)
{
    uint32_t node;

    do {
        node = walk->open[--walk->opened];
        walk->component[node] = walk->components;
        walk->low[node] = UNSEEN - 1; /* closed: lowers no number */
    } while (node != root);
    walk->components++;
}

static void
from_root(struct walk *walk, uint32_t root)
{
    const struct plus_graph *graph = walk->graph;

    enter(walk, root);
    while (walk->depth > 0) {
        uint32_t node = walk->path[walk->depth - 1];
        if (walk->next[node] == graph->first[node + 1]) {
            walk->depth--;
            uint32_t low = walk->low[node];

            if (low == walk->component[node]) {
                close_component(walk, node);
            }
            else {
                uint32_t parent =
                    walk->path[walk->depth - 1]; /* a root always closes its component */
                walk->low[parent] = low < walk->low[parent] ? low : walk->low[parent];
            }
            continue;
        }
        uint32_t target = graph->target[walk->next[node]++];
        if (walk->low[target] == UNSEEN) {
            enter(walk, target);
        }
        else if (walk->low[target] < walk->low[node]) {
            walk->low[node] = walk->low[target];
        }
    }
}

int64_t
plus_graph_components(const struct plus_graph *graph, uint32_t *component)
{
    size_t count = graph->count;
    struct walk walk = {.graph = graph, .component = component};
    int64_t result = -ENOMEM;

    walk.low = malloc((count + 1) * sizeof *walk.low);
    walk.open = malloc((count + 1) * sizeof *walk.open);
    walk.path = malloc((count + 1) * sizeof *walk.path);
    walk.next = malloc((count + 1) * sizeof *walk.next);
    if (walk.low == NULL || walk.open == NULL || walk.path == NULL || walk.next == NULL) {
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        walk.low[i] = UNSEEN;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (walk.low[i] == UNSEEN) {
            from_root(&walk, i);
        }
    }
    result = walk.components;
done:
    free(walk.low);
    free(walk.open);
    free(walk.path);
    free(walk.next);
    return result;
}
