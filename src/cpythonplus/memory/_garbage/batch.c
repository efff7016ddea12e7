/* With gc.DEBUG_SAVEALL the collector appends unreachable objects to a list, and frees none.
 *
 *     init         items -> numbers, by a table of addresses; tp_traverse of each -> references between them, and the
 *                  objects that each holds alone (leaves); components: items that reach each other
 *     key          of a component: batch_key.c
 *     is_garbage   the only references to each item are those of the list and of other items: none was resurrected
 *     clear        tp_clear of each, as the collector would have done: this runs destructors
 *
 * Items are borrowed, so the list must not change from init to the end.  Before clear the caller moves the items into
 * a list of its own, because destructors may change gc.garbage.  The collector handles finalizers and weak references
 * before it puts anything into the list.
 *
 * A leaf is an object outside the batch whose only reference comes from an item: it is freed with the item.  If an
 * instance was asked for its __dict__ after the collector chose the items, the new dict is a leaf, and counts as part
 * of the instance.
 *
 * If one item was resurrected, is_garbage is false for the whole batch, which is then released unchanged.  The next
 * collection finds those that are still unreachable.
 *
 * Rejected: gc.get_referents() for each item, which makes a list each in the middle of a collection. */
#include "batch.h"

#include "../../_interp/objects/sizes.h"

/* ---- references ---------------------------------------------------------------------------------- */

struct visitor {
    struct plus_batch *batch;
    uint32_t source;
    uint32_t seen;
    bool within; /* a leaf dict of the source is being traversed */
};

static int
add_edge(struct plus_batch *batch, uint32_t target, uint32_t place)
{
    uint32_t *targets = (uint32_t *)batch->graph.target;

    if (batch->edges == batch->edge_capacity) {
        size_t capacity = batch->edge_capacity * 2 + 64;
        uint32_t *more = realloc(targets, capacity * sizeof *more);
        if (more != NULL) {
            batch->graph.target = targets = more;
        }
        uint16_t *places = realloc(batch->place, capacity * sizeof *places);
        if (places != NULL) {
            batch->place = places;
        }
        if (more == NULL || places == NULL) {
            return batch->error = -ENOMEM;
        }
        batch->edge_capacity = capacity;
    }
    targets[batch->edges] = target;
    batch->place[batch->edges++] = (uint16_t)(place < UINT16_MAX ? place : UINT16_MAX);
    return 0;
}

static int
note_referent(PyObject *op, void *arg);

/* Counts a leaf of the source.  If the leaf is a dict, its referents count as the source's own: reading __dict__ of an
 * instance may have made that dict after the collector chose the items. */
static int
note_leaf(PyObject *op, struct visitor *visitor)
{
    struct plus_batch *batch = visitor->batch;

    batch->leaves[visitor->source]++;
    batch->leaf_bytes[visitor->source] += plus_object_bytes(op);
    if (!PyDict_CheckExact(op) || visitor->within) {
        return 0;
    }
    visitor->within = true;
    int status = Py_TYPE(op)->tp_traverse(op, note_referent, visitor);
    visitor->within = false;
    return status;
}

static int
note_referent(PyObject *op, void *arg)
{
    struct visitor *visitor = arg;
    struct plus_batch *batch = visitor->batch;
    const struct plus_address_slot *target = plus_address_table_find(&batch->indices, op);
    uint32_t place = visitor->seen++;

    if (target != NULL) {
        batch->inside[target->number]++;
        return add_edge(batch, (uint32_t)target->number, place);
    }
    return Py_REFCNT(op) == 1 ? note_leaf(op, visitor) : 0;
}

static int
read_references(struct plus_batch *batch)
{
    size_t *first = (size_t *)batch->graph.first;

    for (uint32_t i = 0; i < batch->graph.count; i++) {
        PyObject *op = batch->items[i];
        traverseproc traverse = Py_TYPE(op)->tp_traverse;
        struct visitor visitor = {.batch = batch, .source = i};

        first[i] = batch->edges;
        /* An item that is listed twice has its references once. */
        if (traverse != NULL && plus_address_table_find(&batch->indices, op)->number == i) {
            (void)traverse(op, note_referent, &visitor);
        }
        if (batch->error != 0) {
            return batch->error;
        }
    }
    first[batch->graph.count] = batch->edges;
    return 0;
}

/* ---- components ---------------------------------------------------------------------------------- */

/* A counting sort of the items by component. */
static int
sort_items(struct plus_batch *batch)
{
    uint32_t count = batch->graph.count;
    size_t places = (size_t)batch->components + 2;

    batch->start = calloc(places, sizeof *batch->start);
    if (batch->start == NULL) {
        return -ENOMEM;
    }
    /* Each count is stored two places further on, so that filling moves the start into its place. */
    for (uint32_t i = 0; i < count; i++) {
        batch->start[batch->component[i] + 2]++;
    }
    for (size_t i = 2; i < places; i++) {
        batch->start[i] += batch->start[i - 1];
    }
    for (uint32_t i = 0; i < count; i++) {
        batch->order[batch->start[batch->component[i] + 1]++] = i;
    }
    return 0;
}

static int
find_components(struct plus_batch *batch)
{
    int64_t found = plus_graph_components(&batch->graph, batch->component);

    if (found < 0) {
        return (int)found;
    }
    batch->components = (uint32_t)found;
    return sort_items(batch);
}

bool
plus_batch_is_cycle(const struct plus_batch *batch, uint32_t component)
{
    uint32_t node = batch->order[batch->start[component]];

    if (batch->start[component + 1] - batch->start[component] > 1) {
        return true;
    }
    for (size_t i = batch->graph.first[node]; i < batch->graph.first[node + 1]; i++) {
        if (batch->graph.target[i] == node) {
            return true;
        }
    }
    return false;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static int
take_memory(struct plus_batch *batch)
{
    size_t count = batch->graph.count;

    batch->graph.first = calloc(count + 1, sizeof *batch->graph.first);
    batch->inside = calloc(count + 1, sizeof *batch->inside);
    batch->leaves = calloc(count + 1, sizeof *batch->leaves);
    batch->leaf_bytes = calloc(count + 1, sizeof *batch->leaf_bytes);
    batch->component = calloc(count + 1, sizeof *batch->component);
    batch->order = calloc(count + 1, sizeof *batch->order);
    if (batch->graph.first == NULL || batch->inside == NULL || batch->leaves == NULL ||
        batch->leaf_bytes == NULL || batch->component == NULL || batch->order == NULL) {
        return -ENOMEM;
    }
    return plus_address_table_reserve(&batch->indices, count);
}

int
plus_batch_init(struct plus_batch *batch, PyObject *list, Py_ssize_t start)
{
    Py_ssize_t count = PyList_GET_SIZE(list) - start;

    *batch = (struct plus_batch){.error = 0};
    if (start < 0 || count < 0 || count >= (Py_ssize_t)UINT32_MAX - 2) {
        PyErr_SetString(PyExc_ValueError, "start must be within the list");
        return -1;
    }
    batch->items = ((PyListObject *)list)->ob_item + start;
    batch->graph.count = (uint32_t)count;
    if (take_memory(batch) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = batch->graph.count; i-- > 0;) {
        plus_address_table_get(&batch->indices, batch->items[i])->number = i;
    }
    if (read_references(batch) < 0 || find_components(batch) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void
plus_batch_free(struct plus_batch *batch)
{
    plus_address_table_clear(&batch->indices);
    free((void *)batch->graph.first);
    free((void *)batch->graph.target);
    free(batch->place);
    free(batch->inside);
    free(batch->leaves);
    free(batch->leaf_bytes);
    free(batch->component);
    free(batch->order);
    free(batch->start);
}

bool
plus_batch_is_garbage(const struct plus_batch *batch)
{
    for (uint32_t i = 0; i < batch->graph.count; i++) {
        PyObject *op = batch->items[i];

        if (Py_REFCNT(op) != (Py_ssize_t)batch->inside[i] + 1) {
            return false;
        }
    }
    return true;
}

void
plus_batch_clear(const struct plus_batch *batch)
{
    for (uint32_t i = 0; i < batch->graph.count; i++) {
        PyObject *op = batch->items[i];
        inquiry clear = Py_TYPE(op)->tp_clear;

        /* gc.garbage is the place for objects with a tp_del; see PEP 442. */
        if (clear == NULL || Py_TYPE(op)->tp_del != NULL) {
            continue;
        }
        (void)clear(op);
        if (PyErr_Occurred()) {
            PyErr_WriteUnraisable(NULL);
        }
    }
}
