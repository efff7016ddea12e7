/* The shape of a path mixes, for each step, the attribute's name and the class of the object that the step leads to.
 * Keys and indices are left out.  A name in the namespace of a module, or of a class in a module, leads to one certain
 * object, so the object's address is used instead.  A root that is no module stands for all roots with the same
 * plus_together_key(). */
#include "owner_shape.h"

#include "../../_heap/references.h"
#include "../../_interp/objects/layouts.h"
#include "together.h"

#define MOST_STEPS 64  /* of a path; a linked list is longer */
#define MOST_NAMES 256 /* in a dict of attributes; a larger one is not searched */

static uint64_t
mixed(uint64_t shape, const void *with)
{
    return (shape ^ (uintptr_t)with) * UINT64_C(0x9E3779B97F4A7C15) + (shape >> 29);
}

struct wanted {
    const PyObject *target;
    const void *name;
};

static int
match(PyObject *name, const char *field, PyObject *value, void *arg)
{
    struct wanted *wanted = arg;

    if (value != wanted->target) {
        return 0;
    }
    wanted->name = name != NULL ? (const void *)name : field;
    return 1;
}

static const void *
key_in(PyObject *dict, const PyObject *target)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    while (PyDict_GET_SIZE(dict) <= MOST_NAMES && PyDict_Next(dict, &position, &key, &value)) {
        if (value == target) {
            return key;
        }
    }
    return NULL;
}

/* Attribute names are interned, so equal names have the same address. */
static const void *
name_of_step(const struct plus_reach *owners, uint32_t from, uint32_t to)
{
    const struct plus_heap_graph *graph = owners->graph;
    PyObject *source = graph->objects[from], *target = graph->objects[to];
    uint32_t holder = owners->parent[from];

    if (owners->anchor[to] == to) {
        return target;
    }
    if (PyList_Check(source) || PyTuple_Check(source) || PyAnySet_Check(source)) {
        return NULL;
    }
    if (PyDict_Check(source)) {
        PyObject *instance = holder == PLUS_NO_NODE ? NULL : graph->objects[holder];
        bool names = instance != NULL && (plus_reach_is_namespace(owners, from) ||
                                          plus_instance_dict(instance) == source);
        return names ? key_in(source, target) : NULL;
    }
    struct wanted wanted = {target, NULL};

    (void)plus_attributes_visit(source, match, &wanted);
    return wanted.name;
}

uint64_t
plus_owner_shape(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint64_t shape = 1;
    int steps = 0;

    for (uint32_t at = node; at != PLUS_NO_NODE && steps < MOST_STEPS; at = owners->parent[at]) {
        uint32_t holder = owners->parent[at];
        const void *together = graph->objects[at] == NULL ? NULL : plus_together_key(owners, at);

        if (together != NULL) { /* a root, or a variable of a function */
            shape = mixed(shape, together);
            break;
        }
        if (holder == PLUS_NO_NODE || graph->objects[holder] == NULL) {
            shape = mixed(shape, graph->objects[at]);
            break;
        }
        steps++;
        shape = mixed(mixed(shape, Py_TYPE(graph->objects[at])), name_of_step(owners, holder, at));
    }
    return shape != 0 ? shape : 1;
}
