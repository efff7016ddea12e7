/* A table may be as much larger as it has more entries: what is above that is room for entries to come.
 *
 *     87,381 entries, 5.0 MiB  ->  87,400 entries, 10.0 MiB      5.0 MiB is room
 *     40,000 entries, 2.5 MiB  ->  80,000 entries, 5.0 MiB       none of it is
 *
 * Rejected: to leave tables out altogether, for what many numbers take in a list or a dict is the table alone. */
#include "owner_tables.h"

#include <errno.h>

#include "../_base/copy_memory.h"

uint64_t
plus_table_excess(const struct plus_reach *owners, const struct plus_mark *mark, uint32_t node)
{
    PyObject *op = owners->graph->objects[node];
    uint64_t now = plus_table_bytes(op);
    const struct plus_marked *before = now == 0 ? NULL : plus_mark_before(mark, op);

    if (before == NULL || before->length <= 0 || now <= before->table) {
        return 0;
    }
    double more = (double)plus_entries_of(op) / (double)before->length;
    double fair = (double)before->table * (more > 1 ? more : 1);

    return (double)now > fair ? now - (uint64_t)fair : 0;
}

uint64_t *
plus_tables_find(const struct plus_reach *owners, const struct plus_mark *mark, int *status)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint64_t *excess = NULL;

    *status = 0;
    for (uint32_t node = graph->frames + 1; mark != NULL && node < graph->edges.count; node++) {
        uint64_t bytes = plus_table_excess(owners, mark, node);
        if (bytes > 0 && excess == NULL &&
            (excess = plus_calloc(graph->edges.count, sizeof *excess)) == NULL) {
            *status = -ENOMEM;
            return NULL;
        }
        if (bytes > 0) {
            excess[node] = bytes;
        }
    }
    for (uint32_t i = graph->edges.count - 1; excess != NULL && i-- > 0;) {
        uint32_t node = owners->queue[i], holder = owners->parent[node];
        excess[holder == PLUS_NO_NODE ? 0 : holder] += excess[node];
    }
    return excess;
}
