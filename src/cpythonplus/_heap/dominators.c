/* The algorithm of Lengauer and Tarjan.  Numbers are those of a depth-first search, from 0 on; `order` maps a number to
 * its node.
 *
 *     semi[w]       the least number from which a path leads to w through higher numbers only
 *     bucket of w   nodes whose semi-dominator is w: their dominator is found when w's parent is linked
 *     ancestor      forest of the linked nodes; label[v]: the node with the least semi on v's path to its root */
#include "dominators.h"

#include "../_base/memory/copy_memory.h"

#include <errno.h>

int
plus_roots_add(struct plus_roots *roots, uint32_t node)
{
    uint32_t *nodes =
        plus_room_for_one(roots->nodes, roots->count, &roots->capacity, 1024, sizeof *nodes);

    if (nodes == NULL) {
        return -ENOMEM;
    }
    roots->nodes = nodes;
    roots->nodes[roots->count++] = node;
    return 0;
}

/* ---- depth first ---------------------------------------------------------------------------------- */

struct search {
    const struct plus_graph *graph;
    uint32_t *number, *parent, *order; /* parent: a number */
    size_t *next;                      /* index of the next edge to follow */
    uint32_t *path;
    uint32_t count;
};

static void
enter(struct search *search, uint32_t node, uint32_t parent)
{
    search->number[node] = search->count;
    search->parent[search->count] = parent;
    search->order[search->count++] = node;
    search->next[node] = search->graph->first[node];
}

/* Number all nodes that are reachable from `root` and have no number yet. */
static void
search_from(struct search *search, uint32_t root)
{
    const struct plus_graph *graph = search->graph;
    uint32_t depth = 0;

    enter(search, root, 0);
    search->path[depth++] = root;
    while (depth > 0) {
        uint32_t node = search->path[depth - 1];
        if (search->next[node] == graph->first[node + 1]) {
            depth--;
            continue;
        }
        uint32_t target = graph->target[search->next[node]++];
        if (search->number[target] == PLUS_NO_NODE) {
            enter(search, target, search->number[node]);
            search->path[depth++] = target;
        }
    }
}

static void
free_search(struct search *search)
{
    plus_free(search->number);
    plus_free(search->parent);
    plus_free(search->order);
    plus_free(search->next);
    plus_free(search->path);
}

/* Allocate the arrays of a search, and give node 0 the number 0.  Returns 0, or -ENOMEM. */
static int
begin_search(struct search *search, const struct plus_graph *graph)
{
    size_t nodes = graph->count;

    *search = (struct search){.graph = graph};
    search->number = plus_malloc(nodes * sizeof(uint32_t));
    search->parent = plus_malloc(nodes * sizeof(uint32_t));
    search->order = plus_malloc(nodes * sizeof(uint32_t));
    search->path = plus_malloc(nodes * sizeof(uint32_t));
    search->next = plus_malloc(nodes * sizeof(size_t));
    if (search->number == NULL || search->parent == NULL || search->order == NULL ||
        search->path == NULL || search->next == NULL) {
        free_search(search);
        return -ENOMEM;
    }
    for (size_t i = 0; i < nodes; i++) {
        search->number[i] = PLUS_NO_NODE;
    }
    search->number[0] = search->parent[0] = search->order[0] = 0;
    search->count = 1;
    return 0;
}

static void
search_all(struct search *search, const struct plus_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        if (search->number[roots->nodes[i]] == PLUS_NO_NODE) {
            search_from(search, roots->nodes[i]);
        }
    }
}

int
plus_graph_reach_all(const struct plus_graph *graph, struct plus_roots *roots, const uint8_t *rank,
                     uint8_t ranks)
{
    struct search search;
    int status = begin_search(&search, graph);

    if (status < 0) {
        return status;
    }
    size_t given = roots->count;

    search_all(&search, roots);
    uint32_t led_to = search.count; /* reachable from the given roots */

    for (uint8_t least = 0; least < ranks; least++) {
        for (uint32_t node = 1; node < graph->count && status == 0; node++) {
            if (rank[node] == least && search.number[node] == PLUS_NO_NODE) {
                search_from(&search, node);
                status = plus_roots_add(roots, node);
            }
        }
    }
    /* A later root may lead to an earlier one, which is then no root. */
    size_t added = roots->count, kept = roots->count;

    for (uint32_t node = 0; node < graph->count; node++) {
        search.number[node] = search.number[node] < led_to ? search.number[node] : PLUS_NO_NODE;
    }
    search.count = led_to;
    while (added > given) {
        uint32_t root = roots->nodes[--added];
        if (search.number[root] == PLUS_NO_NODE) {
            search_from(&search, root);
            roots->nodes[--kept] = root;
        }
    }
    for (size_t i = 0; kept > given && kept + i < roots->count; i++) {
        roots->nodes[given + i] = roots->nodes[kept + i];
    }
    roots->count -= kept - given;
    free_search(&search);
    return status;
}

/* ---- dominators ------------------------------------------------------------------------------------ */

/* All arrays are indexed by number. */
struct forest {
    uint32_t *semi, *ancestor, *label, *bucket, *next_in_bucket, *dominator;
    uint32_t *way;
};

/* The label of v, after path compression to the root of its tree. */
static uint32_t
evaluate(struct forest *forest, uint32_t v)
{
    uint32_t depth = 0;

    if (forest->ancestor[v] == PLUS_NO_NODE) {
        return forest->label[v];
    }
    for (uint32_t at = v; forest->ancestor[forest->ancestor[at]] != PLUS_NO_NODE;
         at = forest->ancestor[at]) {
        forest->way[depth++] = at;
    }
    while (depth > 0) { /* from the root downwards */
        uint32_t at = forest->way[--depth], above = forest->ancestor[at];
        if (forest->semi[forest->label[above]] < forest->semi[forest->label[at]]) {
            forest->label[at] = forest->label[above];
        }
        forest->ancestor[at] = forest->ancestor[above];
    }
    return forest->label[v];
}

/* The reversed edges, by number. */
struct backwards {
    size_t *first;
    uint32_t *source;
};

static int
turn_round(const struct search *search, const struct plus_roots *roots, struct backwards *back)
{
    const struct plus_graph *graph = search->graph;
    size_t edges = roots->count;

    back->first = plus_calloc((size_t)search->count + 2, sizeof *back->first);
    if (back->first == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 1; i < search->count; i++) {
        uint32_t node = search->order[i];
        for (size_t at = graph->first[node]; at < graph->first[node + 1]; at++) {
            back->first[search->number[graph->target[at]] + 2]++;
            edges++;
        }
    }
    for (size_t i = 0; i < roots->count; i++) {
        back->first[search->number[roots->nodes[i]] + 2]++;
    }
    back->source = plus_malloc((edges + 1) * sizeof *back->source);
    if (back->source == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 1; i <= search->count; i++) {
        back->first[i + 1] += back->first[i];
    }
    for (size_t i = 0; i < roots->count; i++) {
        back->source[back->first[search->number[roots->nodes[i]] + 1]++] = 0;
    }
    for (uint32_t i = 1; i < search->count; i++) {
        uint32_t node = search->order[i];
        for (size_t at = graph->first[node]; at < graph->first[node + 1]; at++) {
            back->source[back->first[search->number[graph->target[at]] + 1]++] = i;
        }
    }
    return 0;
}

static void
find_dominators(struct forest *forest, const struct search *search, const struct backwards *back)
{
    for (uint32_t w = search->count - 1; w > 0; w--) {
        uint32_t parent = search->parent[w];

        for (size_t at = back->first[w]; at < back->first[w + 1]; at++) {
            uint32_t least = evaluate(forest, back->source[at]);
            if (forest->semi[least] < forest->semi[w]) {
                forest->semi[w] = forest->semi[least];
            }
        }
        forest->next_in_bucket[w] = forest->bucket[forest->semi[w]];
        forest->bucket[forest->semi[w]] = w;
        forest->ancestor[w] = parent;
        /* Empty the parent's bucket. */
        uint32_t v = forest->bucket[parent], next;

        for (; v != PLUS_NO_NODE; v = next) {
            uint32_t least = evaluate(forest, v);
            next = forest->next_in_bucket[v];
            forest->dominator[v] = forest->semi[least] < forest->semi[v] ? least : parent;
        }
        forest->bucket[parent] = PLUS_NO_NODE;
    }
    for (uint32_t w = 1; w < search->count; w++) {
        if (forest->dominator[w] != forest->semi[w]) {
            forest->dominator[w] = forest->dominator[forest->dominator[w]];
        }
    }
}

static uint32_t *
filled(uint32_t count, bool with_own)
{
    uint32_t *numbers = plus_malloc((size_t)count * sizeof *numbers);

    for (uint32_t i = 0; numbers != NULL && i < count; i++) {
        numbers[i] = with_own ? i : PLUS_NO_NODE;
    }
    return numbers;
}

static int
dominate(const struct search *search, const struct plus_roots *roots, uint32_t *idom)
{
    uint32_t count = search->count;
    struct backwards back = {NULL, NULL};
    struct forest forest = {
        .semi = filled(count, true),
        .label = filled(count, true),
        .ancestor = filled(count, false),
        .bucket = filled(count, false),
        .next_in_bucket = filled(count, false),
        .dominator = filled(count, false),
        .way = filled(count, false),
    };
    int status = turn_round(search, roots, &back);

    if (forest.semi == NULL || forest.label == NULL || forest.ancestor == NULL ||
        forest.bucket == NULL || forest.next_in_bucket == NULL || forest.dominator == NULL ||
        forest.way == NULL) {
        status = -ENOMEM;
    }
    if (status == 0) {
        find_dominators(&forest, search, &back);
        for (uint32_t w = 1; w < count; w++) {
            idom[search->order[w]] = search->order[forest.dominator[w]];
        }
    }
    plus_free(back.first);
    plus_free(back.source);
    plus_free(forest.semi);
    plus_free(forest.label);
    plus_free(forest.ancestor);
    plus_free(forest.bucket);
    plus_free(forest.next_in_bucket);
    plus_free(forest.dominator);
    plus_free(forest.way);
    return status;
}

int
plus_graph_dominators(const struct plus_graph *graph, const struct plus_roots *roots,
                      uint32_t *idom, uint32_t *order, uint32_t *reached)
{
    struct search search;
    int status = begin_search(&search, graph);

    if (status < 0) {
        return status;
    }
    for (uint32_t node = 0; node < graph->count; node++) {
        idom[node] = PLUS_NO_NODE;
    }
    search_all(&search, roots);
    status = dominate(&search, roots, idom);
    for (uint32_t i = 0; i < search.count; i++) {
        order[i] = search.order[i];
    }
    *reached = search.count;
    free_search(&search);
    return status;
}
