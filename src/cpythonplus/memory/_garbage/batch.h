/* What one collection found unreachable, as a graph.
 *
 * All with the GIL held.  No Python code runs but in plus_batch_clear. */
#ifndef PLUS_MEMORY_BATCH_H
#define PLUS_MEMORY_BATCH_H

#include "../../_base/compat.h"
#include "../../_base/memory/address_table.h"
#include "../../_heap/graph.h"

struct plus_batch {
    PyObject **items;                  /* borrowed from the list */
    struct plus_address_table indices; /* of the items; of one that is listed twice, the first */
    struct plus_graph graph;           /* references between the items */
    uint16_t *place;        /* by edge: its position among the source's referents, as traversed */
    uint32_t *inside;       /* by item: references from other items */
    uint32_t *leaves;       /* by item: referents outside that nothing else refers to... */
    Py_ssize_t *leaf_bytes; /* ...and their size */
    uint32_t *component;    /* by item */
    uint32_t *order;        /* items, sorted by component */
    uint32_t *start;        /* by component: its first place in order; one more at the end */
    uint32_t components;
    size_t edges, edge_capacity;
    int error; /* of what is going on: 0 or -ENOMEM */
};

/* Reads the items list[start:] of an exact list, which must stay as it is while the batch lives.  0, or -1 with
 * MemoryError; plus_batch_free in any case. */
int
plus_batch_init(struct plus_batch *batch, PyObject *list, Py_ssize_t start);

void
plus_batch_free(struct plus_batch *batch);

/* Whether a component is a cycle: more than one member, or one that refers to itself. */
bool
plus_batch_is_cycle(const struct plus_batch *batch, uint32_t component);

/* Whether nothing but the list and the items refer to the items: one that was resurrected since must live. */
bool
plus_batch_is_garbage(const struct plus_batch *batch);

/* A number for the component that is the same for components that look alike: types, code objects, lines of
 * tracebacks, and which refers to which, by which local or which key; not how many there are of one kind, nor
 * what hangs from them.  0, or -1 with MemoryError. */
int
plus_batch_key(const struct plus_batch *batch, uint32_t component, uint64_t *key);

/* Breaks the cycles as the collector would have done (tp_clear of each), which may run destructors of what the
 * items kept alive.  The list's items must be referenced by it, so that none goes meanwhile.  Finalizers and
 * weak references have been dealt with by the collector, before it put the items into the list. */
void
plus_batch_clear(const struct plus_batch *batch);

#endif
