/* Three passes, as the collector's over its young objects, over what hangs on the cells of one function that has ended:
 *
 *     discover   from the cells on, what is of the kinds in is_followed(): a node each, and the references between
 *                nodes are counted in `inside`; those from the closure and the finished frames, too
 *     hold       a node with more references than `inside` is held from outside, and so is what it reaches
 *     empty      a cell that is not held, and that its content leads back to, lies on an island: it is emptied
 *
 * Nothing is changed before all is known, and nodes are borrowed: no code runs until the first cell is emptied.  The
 * cells that are emptied are referenced before that, since one's content may be what holds another.
 *
 * Fewer references than are explained: a frame counts that has none of its own; then nothing is known and nothing done.
 * So with more than MOST_NODES objects.  Modules are not followed: alive by themselves, and large.  What is of another
 * kind is no node; it keeps what it refers to held, as its references are not explained.
 *
 * Rejected: a collection of the youngest generation instead, which looks at all that was made since the last one;
 * clearing every cell, which would break inner functions that live on. */
#include "islands.h"

#include <string.h>

/* Enough for functions that call each other; linear search through so few is quicker than a table. */
#define MOST_NODES 256
/* A larger container is data and not a table of functions. */
#define MOST_ITEMS 64

struct node {
    PyObject *op;      /* borrowed: nothing runs while nodes are in use */
    Py_ssize_t inside; /* references that are explained */
    bool held;         /* from outside, or by one that is */
    bool reached;      /* by what is spread just now */
    bool expanded;
};

struct island {
    struct node nodes[MOST_NODES];
    int count;
    bool overflow;     /* nothing is known for sure */
    PyObject *visited; /* the object that is being traversed */
};

/* ---- what is followed ------------------------------------------------------------------------ */

static bool
is_wrapper(PyTypeObject *type)
{
    return strcmp(type->tp_name, "functools._lru_cache_wrapper") == 0 ||
           strcmp(type->tp_name, "functools.partial") == 0;
}

/* Exact types only: a subclass may have a traverse of its own. */
static bool
is_followed(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    if (type == &PyTuple_Type) {
        return PyTuple_GET_SIZE(op) <= MOST_NODES; /* a closure is one */
    }
    if (type == &PyList_Type) {
        return PyList_GET_SIZE(op) <= MOST_ITEMS;
    }
    if (type == &PyDict_Type) {
        return PyDict_GET_SIZE(op) <= MOST_ITEMS;
    }
    return type == &PyCell_Type || type == &PyFunction_Type || type == &PyMethod_Type ||
           type == &PyStaticMethod_Type || type == &PyClassMethod_Type || is_wrapper(type);
}

/* A function's module: alive by itself, and large. */
static bool
is_module_of(PyObject *function, PyObject *op)
{
    return PyFunction_Check(function) && (op == ((PyFunctionObject *)function)->func_globals ||
                                          op == ((PyFunctionObject *)function)->func_builtins);
}

static struct node *
find(struct island *island, PyObject *op)
{
    for (int i = 0; i < island->count; i++) {
        if (island->nodes[i].op == op) {
            return &island->nodes[i];
        }
    }
    return NULL;
}

/* ---- the collector's three passes ------------------------------------------------------------ */

static int
count_known(PyObject *op, void *argument)
{
    struct node *node = find(argument, op);

    if (node != NULL) {
        node->inside++;
    }
    return 0;
}

static int
discover(PyObject *op, void *argument)
{
    struct island *island = argument;

    if (is_module_of(island->visited, op)) {
        return 0;
    }
    struct node *node = find(island, op);
    if (node == NULL && is_followed(op)) {
        if (island->count == MOST_NODES) {
            island->overflow = true;
            return 1;
        }
        node = &island->nodes[island->count++];
        *node = (struct node){.op = op};
    }
    if (node != NULL) {
        node->inside++;
    }
    return 0;
}

static void
traverse(struct island *island, PyObject *op, visitproc visit)
{
    traverseproc follow = Py_TYPE(op)->tp_traverse;

    island->visited = op;
    if (follow != NULL) {
        follow(op, visit, island);
    }
}

static int
reach(PyObject *op, void *argument)
{
    struct node *node = find(argument, op);

    if (node != NULL) {
        node->reached = true;
    }
    return 0;
}

/* Until nothing more is reached from what is; the chains are short. */
static void
spread(struct island *island)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (int i = 0; i < island->count; i++) {
            struct node *node = &island->nodes[i];

            if (node->reached && !node->expanded) {
                node->expanded = changed = true;
                traverse(island, node->op, reach);
            }
        }
    }
}

static void
explore(struct island *island, PyObject *closure, Py_ssize_t count, PyObject *frames)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        island->nodes[island->count++] = (struct node){.op = PyTuple_GET_ITEM(closure, i)};
    }
    for (int i = 0; i < island->count && !island->overflow; i++) {
        traverse(island, island->nodes[i].op, discover);
    }
    if (find(island, closure) == NULL) {
        traverse(island, closure, count_known);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
        /* A frame that still runs shows nothing, and so holds what it has. */
        if (PyFrame_Check(PyList_GET_ITEM(frames, i))) {
            traverse(island, PyList_GET_ITEM(frames, i), count_known);
        }
    }
    for (int i = 0; i < island->count; i++) {
        struct node *node = &island->nodes[i];

        node->reached = Py_REFCNT(node->op) > node->inside;
        /* More is explained than there is: a frame has a reference that does not count. */
        island->overflow |= Py_REFCNT(node->op) < node->inside;
    }
    spread(island);
    for (int i = 0; i < island->count; i++) {
        island->nodes[i].held = island->nodes[i].reached;
    }
}

/* ---- what is emptied ------------------------------------------------------------------------- */

/* Whether a cell's content leads back to it. */
static bool
is_on_a_cycle(struct island *island, struct node *cell)
{
    for (int i = 0; i < island->count; i++) {
        island->nodes[i].reached = island->nodes[i].expanded = false;
    }
    traverse(island, cell->op, reach);
    spread(island);
    return cell->reached;
}

Py_ssize_t
plus_islands_close(PyObject *closure, Py_ssize_t count, PyObject *frames)
{
    struct island island = {.count = 0};
    PyObject *emptied[MOST_NODES];
    Py_ssize_t found = 0;

#ifdef Py_GIL_DISABLED
    return 0;
#endif
    if (count > MOST_NODES) {
        return 0;
    }
    explore(&island, closure, count, frames);
    for (Py_ssize_t i = 0; i < count && !island.overflow; i++) {
        struct node *cell = &island.nodes[i];

        if (!cell->held && is_on_a_cycle(&island, cell)) {
            emptied[found++] = cell->op;
        }
    }
    for (Py_ssize_t i = 0; i < found; i++) {
        Py_INCREF(emptied[i]);
    }
    for (Py_ssize_t i = 0; i < found; i++) {
        PyCell_Set(emptied[i], NULL);
        Py_DECREF(emptied[i]);
    }
    return found;
}
