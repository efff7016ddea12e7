/* Breadth first, backwards: each walk over the heap finds what refers to the objects that the one before found.  Why not
 * forwards: it would need a note of the way for each object of the heap.  Nothing may change between two walks,
 * so the GIL is held all the time. */
#include "root_path.h"

#include <errno.h>

#include "../_interp/live_frames.h"
#include "heap_walk.h"
#include "record_table.h"

#define STARTS_MAX 1000 /* instances of a class to begin with */
#define NODES_MAX                                                                                  \
    200000 /* what refers to very much more is on no shortest path that anybody wants to read */
#define FILTER_BITS 65536 /* a power of two */
#define FOUND 1

struct node {
    PyObject *object;
    struct node *next; /* what it refers to; NULL: the target */
    unsigned level;
};

struct search {
    PyObject *target;
    bool any_instance;
    PyObject *caller, *own;
    struct plus_record_table nodes, namespaces; /* the latter: modules by their dict */
    uint64_t filter[FILTER_BITS / 64];          /* which objects may be in `nodes` */
    unsigned level;
    struct node *last, *first; /* met last; the path's first one */
    PyObject *root, *name;     /* borrowed */
};

static size_t
filter_bit(const void *address)
{
    return (size_t)(((uint64_t)(uintptr_t)address >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 48);
}

static struct node *
find_node(const struct search *search, PyObject *op)
{
    size_t bit = filter_bit(op);

    if ((search->filter[bit / 64] >> (bit % 64) & 1) == 0) {
        return NULL;
    }
    return plus_record_table_find(&search->nodes, op);
}

static int
add_node(struct search *search, PyObject *op, struct node *next, unsigned level)
{
    struct node *node = plus_record_table_add(&search->nodes, op);
    size_t bit = filter_bit(op);

    if (node == NULL) {
        return -ENOMEM;
    }
    search->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    *node = (struct node){op, next, level};
    search->last = node;
    return 0;
}

/* ---- the first walk ------------------------------------------------------------------------------- */

static int
start_at(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct search *search = arg;

    (void)parent, (void)origin;
    if ((PyObject *)Py_TYPE(op) != search->target) {
        return 0;
    }
    return search->nodes.count == STARTS_MAX ? FOUND : add_node(search, op, NULL, 0);
}

static int
start(struct search *search)
{
    const struct plus_heap_visitor visitor = {start_at, NULL, search};

    if (!search->any_instance) {
        return add_node(search, search->target, NULL, 0);
    }
    int status = plus_heap_walk(&visitor, NULL);
    return status < 0 ? status : 0;
}

/* ---- roots ---------------------------------------------------------------------------------------- */

static int
add_namespaces(struct search *search)
{
    PyObject *modules = PyImport_GetModuleDict(), *name, *module;
    Py_ssize_t position = 0;

    while (PyDict_CheckExact(modules) && PyDict_Next(modules, &position, &name, &module)) {
        PyObject *names = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        if (names == NULL || plus_record_table_find(&search->namespaces, names) != NULL) {
            continue;
        }
        PyObject **record = plus_record_table_add(&search->namespaces, names);
        if (record == NULL) {
            return -ENOMEM;
        }
        *record = module;
    }
    return 0;
}

static bool
is_own(const struct search *search, PyCodeObject *code)
{
    if ((PyObject *)code == search->caller) {
        return true;
    }
    return search->own != Py_None &&
           PyUnicode_Tailmatch(code->co_filename, search->own, 0, PY_SSIZE_T_MAX, -1) == 1;
}

static int
root_in_frame(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct search *search = arg;
    struct node *node = index < 0 ? NULL : find_node(search, value);

    if (node == NULL || is_own(search, code)) {
        return 0;
    }
    search->first = node;
    search->root = (PyObject *)code;
    search->name = PyTuple_GET_ITEM(code->co_localsplusnames, index);
    return FOUND;
}

/* ---- one step ------------------------------------------------------------------------------------- */

static int
step_back(PyObject *from, PyObject *to, void *arg)
{
    struct search *search = arg;
    struct node *node = find_node(search, to);

    if (node == NULL || node->level != search->level || find_node(search, from) != NULL ||
        search->nodes.count >= NODES_MAX) {
        return 0;
    }
    if (add_node(search, from, node, search->level + 1) < 0) {
        return -ENOMEM;
    }
    PyObject **module = plus_record_table_find(&search->namespaces, from);
    if (module != NULL) {
        search->first = search->last;
        search->root = *module;
        return FOUND;
    }
    return 0;
}

/* FOUND, 0 if there is no way on, or -ENOMEM. */
static int
find(struct search *search)
{
    const struct plus_heap_visitor visitor = {NULL, step_back, search};
    size_t before;

    do {
        int status = plus_live_frames_visit(root_in_frame, search);
        before = search->nodes.count;
        if (status == 0) {
            status = plus_heap_walk(&visitor, NULL);
        }
        if (status != 0) {
            return status;
        }
        search->level++;
    } while (search->nodes.count > before);
    search->first = search->last; /* as far back as any */
    return 0;
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* Where the path is told from.  A tuple with one reference that no object has may be one that another thread is just
 * filling, as tuple(iterable) does: a second reference would make that fail. */
static const struct node *
beginning_of(const struct search *search)
{
    const struct node *first = search->first;
    bool may_be_unfinished = search->root == Py_None && first != NULL && first->next != NULL &&
                             PyTuple_CheckExact(first->object) && Py_REFCNT(first->object) == 1;

    return may_be_unfinished ? first->next : first;
}

/* What the path consists of is held before anything else is made. */
static PyObject *
path_of(const struct search *search)
{
    PyObject *objects[256];
    Py_ssize_t length = 0;

    for (const struct node *node = beginning_of(search); node != NULL && length < 256;
         node = node->next) {
        objects[length++] = Py_NewRef(node->object);
    }
    PyObject *root = Py_NewRef(search->root), *name = Py_NewRef(search->name);
    PyObject *list = PyList_New(length);
    for (Py_ssize_t i = 0; i < length; i++) {
        if (list != NULL) {
            PyList_SET_ITEM(list, i, objects[i]);
        }
        else {
            Py_DECREF(objects[i]);
        }
    }
    return Py_BuildValue("(NNN)", root, name, list);
}

PyObject *
plus_root_path(PyObject *target, bool any_instance, PyObject *caller, PyObject *own)
{
    struct search search = {.target = target,
                            .any_instance = any_instance,
                            .caller = caller,
                            .own = own,
                            .nodes = PLUS_RECORD_TABLE(struct node),
                            .namespaces = PLUS_RECORD_TABLE(PyObject *),
                            .root = Py_None,
                            .name = Py_None};
    PyObject *path = NULL;
    int status = add_namespaces(&search);

    if (status == 0) {
        status = start(&search);
    }
    if (status == 0 && search.nodes.count > 0) {
        status = find(&search);
    }
    if (status < 0) {
        PyErr_NoMemory();
    }
    else if (search.nodes.count == 0) {
        PyErr_SetString(PyExc_LookupError, "there is no object of this class");
    }
    else {
        path = path_of(&search);
    }
    plus_record_table_clear(&search.nodes);
    plus_record_table_clear(&search.namespaces);
    return path;
}
