/* Three passes, like those of the collector, over the objects behind the cells of one function that has ended:
 *
 *     discover   from the cells on, each object of the kinds in is_followed() is a node; `inside` counts references
 *                from nodes, from the closure and from the finished frames
 *     hold       a node with more references than `inside` is held from outside, and so are the nodes that it reaches
 *     empty      a cell that is not held, and that its content leads back to, lies on an island: it is emptied
 *
 * Nothing is changed before all is known, and nodes are borrowed: no code runs until the first cell is emptied.
 * References to those cells are taken first, because the content of one may hold another.
 *
 * If a node has fewer references than `inside`, a frame has counted a borrowed one; then nothing is known and nothing
 * is done.  The same holds for more than MOST_NODES objects.  Modules are not followed: they live by themselves, and
 * are large.  An object of another kind is no node; it holds its referents, because its references are not counted.
 *
 * Rejected: a collection of the youngest generation, which looks at all objects made since the last one; clearing
 * every cell, which would break inner functions that live on. */
#include "held.h"

/* Enough for functions that call each other; a linear search through so few is faster than a table. */
#define MOST_NODES 256
/* A larger container is data and no table of functions. */
#define MOST_ITEMS 64

struct node {
    PyObject *op;      /* borrowed: nothing runs while nodes are in use */
    Py_ssize_t inside; /* references from nodes, the closure and finished frames */
    bool held;         /* from outside, or by a held node */
    bool reached;      /* by the node that is being expanded */
    bool expanded;
};

struct island {
    struct node nodes[MOST_NODES];
    int count;
    bool overflow;     /* nothing is known for sure */
    PyObject *visited; /* the object that is being traversed */
};

/* ---- followed objects ------------------------------------------------------------------------ */

static bool
is_wrapper(PyTypeObject *type)
{
    return strcmp(type->tp_name, "functools._lru_cache_wrapper") == 0 ||
           strcmp(type->tp_name, "functools.partial") == 0;
}

/* True for exact types only: a subclass may have its own tp_traverse. */
static bool
is_followed(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);

    if (type == &PyTuple_Type) {
        return PyTuple_GET_SIZE(op) <= MOST_NODES; /* a closure is a tuple */
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

/* True if `op` is the module namespace of the function: a module lives on without the function, and is large. */
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

/* Repeats until nothing more is reached; the chains are short. */
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
        /* A running frame shows nothing to tp_traverse, and so holds its variables. */
        if (PyFrame_Check(PyList_GET_ITEM(frames, i))) {
            traverse(island, PyList_GET_ITEM(frames, i), count_known);
        }
    }
    for (int i = 0; i < island->count; i++) {
        struct node *node = &island->nodes[i];

        node->reached = Py_REFCNT(node->op) > node->inside;
        /* A frame has counted a borrowed reference. */
        island->overflow |= Py_REFCNT(node->op) < node->inside;
    }
    spread(island);
    for (int i = 0; i < island->count; i++) {
        island->nodes[i].held = island->nodes[i].reached;
    }
}

/* ---- emptying cells -------------------------------------------------------------------------- */

/* True if a cell's content leads back to the cell. */
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
