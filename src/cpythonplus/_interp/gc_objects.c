/* The collector's state has one ring for each generation, one behind the other, and one for frozen objects
 * (Include/internal/pycore_gc.h, 'struct _gc_runtime_state'; pycore_interp_structs.h from 3.14 on):
 *
 *     generations[0] | generations[1] | generations[2] | [generation0, up to 3.13] | permanent
 *
 * each of a head, which is part of the ring, a threshold and a count.  A new object is put in front of the
 * youngest ring's head: so the head is what a new object's link leads to, and nothing else has to be known.
 *
 * Why not PyUnstable_GC_VisitObjects(): 3.11 does not have it, and in 3.12 and 3.13 it leaves frozen objects
 * out, which in a server that calls gc.freeze() before it forks are most of the heap. */
#include "gc_objects.h"

#include "../_base/own_memory.h"
#include "facts.h"
#include "probes.h"

#include <stddef.h>

#define GENERATIONS 3
#define FLAG_BITS ((uintptr_t)3) /* of a link: what the collector notes there */

struct link {
    uintptr_t next, prev;
};

struct generation {
    struct link head;
    int threshold, count;
};

/* Found once; the interpreter's state does not move. */
static struct {
    bool tried;
    struct generation *generations;
    struct link *frozen;
    int64_t interpreter;
} rings;

static struct link *
next_of(const struct link *link)
{
    return (struct link *)(link->next & ~FLAG_BITS);
}

static struct link *
prev_of(const struct link *link)
{
    return (struct link *)(link->prev & ~FLAG_BITS);
}

static PyObject *
object_of(struct link *link)
{
    return (PyObject *)(link + 1);
}

/* Through the kernel, as an address that was read may be anything. */
static bool
read_link(const struct link *address, struct link *copy)
{
    return plus_read_memory((uintptr_t)address, copy, sizeof *copy);
}

static bool
is_ring(const struct link *head)
{
    struct link own, next, prev;

    return read_link(head, &own) && read_link(next_of(&own), &next) &&
           read_link(prev_of(&own), &prev) && prev_of(&next) == head && next_of(&prev) == head;
}

/* The thresholds are what the program sees of the state, so they tell whether this is it. */
static bool
has_thresholds(const struct generation *generations)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *told = gc == NULL ? NULL : PyObject_CallMethod(gc, "get_threshold", NULL);
    bool equal = told != NULL && PyTuple_CheckExact(told) && PyTuple_GET_SIZE(told) == GENERATIONS;

    /* 3.14.0 says 0 for the oldest, whose threshold it does not use. */
    for (int i = 0; equal && i < GENERATIONS - 1; i++) {
        equal = PyLong_AsLong(PyTuple_GET_ITEM(told, i)) == generations[i].threshold;
    }
    Py_XDECREF(told);
    Py_XDECREF(gc);
    PyErr_Clear();
    return equal;
}

static struct link *
find_frozen(struct generation *generations)
{
    struct generation *behind = &generations[GENERATIONS];

    if (behind->head.next == (uintptr_t)generations) {
        return (struct link *)((uintptr_t *)behind + 1);
    }
    return &behind->head;
}

/* What a new object is linked to, if that is a ring's head. */
static struct generation *
youngest(void)
{
    PyObject *probe = PyList_New(0);

    if (probe == NULL) {
        PyErr_Clear();
        return NULL;
    }
    struct link *link = PLUS_AT(PLUS_FACT_GC_RINGS, (struct link *)probe - 1), own, behind;
    struct generation *head = NULL, copy[GENERATIONS + 1];

    /* And that there are as many rings behind the head as have to be looked at. */
    if (read_link(link, &own) && read_link(next_of(&own), &behind) && prev_of(&behind) == link &&
        plus_read_memory((uintptr_t)next_of(&own), copy, sizeof copy)) {
        head = (struct generation *)next_of(&own);
    }
    Py_DECREF(probe);
    return head;
}

/* In this order: each check makes the next one safe. */
static void
find_rings(void)
{
    struct generation *generations = youngest();

    rings.tried = true;
    rings.interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (generations == NULL || !has_thresholds(generations)) {
        return;
    }
    struct link *frozen = find_frozen(generations);
    if (is_ring(&generations[0].head) && is_ring(&generations[1].head) &&
        is_ring(&generations[2].head) && is_ring(frozen)) {
        rings.generations = generations;
        rings.frozen = frozen;
    }
}

const char *
plus_probe_gc_rings(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != rings.interpreter || !rings.tried) {
        rings.generations = NULL;
        find_rings();
    }
    if (rings.generations != NULL) {
        return NULL;
    }
    if (!plus_memory_is_readable()) {
        return PLUS_MEMORY_UNREADABLE;
    }
    return "the garbage collector's lists are not laid out as expected";
}

static int
visit_ring(struct link *head, bool frozen, int (*visit)(PyObject *, bool, void *), void *arg)
{
    for (struct link *link = next_of(head); link != head; link = next_of(link)) {
        __builtin_prefetch(next_of(link));
        int stop = visit(object_of(link), frozen, arg);
        if (stop != 0) {
            return stop;
        }
    }
    return 0;
}

int
plus_gc_objects_visit(int (*visit)(PyObject *op, bool frozen, void *arg), void *arg)
{
    for (int i = 0; i < GENERATIONS; i++) {
        int stop = visit_ring(&rings.generations[i].head, false, visit, arg);
        if (stop != 0) {
            return stop;
        }
    }
    return visit_ring(rings.frozen, true, visit, arg);
}
