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

static bool
is_ring(const struct link *head)
{
    return next_of(head) != NULL && prev_of(head) != NULL && prev_of(next_of(head)) == head &&
           next_of(prev_of(head)) == head;
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
    struct link *link = (struct link *)probe - 1;
    struct link *head = next_of(link);
    bool fits = head != NULL && prev_of(head) == link;
    Py_DECREF(probe);
    return fits ? (struct generation *)head : NULL;
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
plus_gc_objects_refusal(void)
{
#ifdef Py_GIL_DISABLED
    return PLUS_FREE_THREADED;
#else
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != rings.interpreter || !rings.tried) {
        rings.generations = NULL;
        find_rings();
    }
    return rings.generations != NULL ? NULL
                                     : "the garbage collector's lists are not laid out as expected";
#endif
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
