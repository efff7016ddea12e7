/* The unreachable objects of one collection, as a graph.
 *
 * The GIL is held throughout.  Only plus_batch_clear() runs Python code. */
#pragma once

#include "../../_base/compat.h"
#include "../../_base/memory/address_table.h"
#include "../../_heap/graph.h"

struct plus_batch {
    PyObject **items;                  /* borrowed from the list */
    struct plus_address_table indices; /* of the items; of a duplicate, the first */
    struct plus_graph graph;           /* references between the items */
    uint16_t *place;        /* by edge: the target's position among the source's referents */
    uint32_t *inside;       /* by item: references from other items */
    uint32_t *leaves;       /* by item: its leaves, referents without another reference... */
    Py_ssize_t *leaf_bytes; /* ...and their size */
    uint32_t *component;    /* by item */
    uint32_t *order;        /* items, sorted by component */
    uint32_t *start;        /* by component: its first index in order; one more at the end */
    uint32_t components;
    size_t edges, edge_capacity;
    int error; /* of the current call: 0 or -ENOMEM */
};

/* Reads the items list[start:] of an exact list, which must not change while the batch lives.  0, or -1 with
 * MemoryError; call plus_batch_free() in any case. */
int
plus_batch_init(struct plus_batch *batch, PyObject *list, Py_ssize_t start);

void
plus_batch_free(struct plus_batch *batch);

/* True if a component is a cycle: more than one member, or one that refers to itself. */
bool
plus_batch_is_cycle(const struct plus_batch *batch, uint32_t component);

/* True if only the list and the items refer to the items.  A resurrected item must live. */
bool
plus_batch_is_garbage(const struct plus_batch *batch);

/* Computes a number that is equal for components that look alike: types, code objects, lines of tracebacks, and their
 * references by local variable or key.  The number of objects of one kind, and objects outside the component, do not
 * matter.  0, or -1 with MemoryError. */
int
plus_batch_key(const struct plus_batch *batch, uint32_t component, uint64_t *key);

/* Breaks the cycles as the collector would have done (tp_clear of each), which may run destructors of objects that the
 * items kept alive.  The list must have references to its items, so that none is freed meanwhile.  The collector has
 * handled finalizers and weak references before it put the items into the list. */
void
plus_batch_clear(const struct plus_batch *batch);
