/* Strongly connected components against reachability, found the slow way. */
#include "../gil/check.h"

#include "_heap/graph.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NODES 12
#define EDGES 24
#define LONG 300000

static bool reach[NODES][NODES];

static void
find_reach(const size_t *first, const uint32_t *target, uint32_t count)
{
    memset(reach, 0, sizeof reach);
    for (uint32_t i = 0; i < count; i++) {
        reach[i][i] = true;
        for (size_t j = first[i]; j < first[i + 1]; j++) {
            reach[i][target[j]] = true;
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < count; j++) {
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
            }
        }
    }
}

static void
check_components(const uint32_t *component, uint32_t count, int64_t found)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(component[i] < found);
        for (uint32_t j = 0; j < count; j++) {
            CHECK((component[i] == component[j]) == (reach[i][j] && reach[j][i]));
            /* Numbers go down along the edges. */
            CHECK(!reach[i][j] || component[j] <= component[i]);
        }
    }
}

static void
test_random_graph(uint64_t seed)
{
    uint64_t state = seed;
    uint32_t count = 1 + (uint32_t)(next_random(&state) % NODES), target[EDGES], component[NODES];
    size_t edges = next_random(&state) % EDGES, first[NODES + 1];

    for (uint32_t i = 0; i <= count; i++) {
        first[i] = i * edges / count;
    }
    for (size_t j = 0; j < edges; j++) {
        target[j] = (uint32_t)(next_random(&state) % count);
    }
    struct plus_graph graph = {.count = count, .first = first, .target = target};
    int64_t found = plus_graph_components(&graph, component);
    find_reach(first, target, count);
    check_components(component, count, found);
}

/* A chain, or a ring: recursion would need more C stack than there is. */
static void
test_long(bool closed)
{
    static size_t first[LONG + 1];
    static uint32_t target[LONG], component[LONG];

    for (uint32_t i = 0; i < LONG; i++) {
        first[i] = i;
        target[i] = i + 1 < LONG ? i + 1 : 0;
    }
    first[LONG] = closed ? LONG : LONG - 1;
    struct plus_graph graph = {.count = LONG, .first = first, .target = target};
    CHECK(plus_graph_components(&graph, component) == (closed ? 1 : LONG));
}

static void
test_nothing(void)
{
    size_t first[1] = {0};
    uint32_t target[1], component[1];
    struct plus_graph graph = {.count = 0, .first = first, .target = target};

    CHECK(plus_graph_components(&graph, component) == 0);
}

int
main(void)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        test_random_graph(seed);
    }
    test_long(false);
    test_long(true);
    test_nothing();
    return 0;
}
