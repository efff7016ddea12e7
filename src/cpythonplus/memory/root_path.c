/* Breadth first, backwards: each walk over the heap finds what refers to the objects that the one before found.  Why not
 * forwards: it would need a note of the way for each object of the heap.
 *
 *     level 0         the targets (or up to 1,000 instances of a class) are nodes
 *     each step       has a frame a node in a variable?  then a walk: who refers to a node of the last level becomes a
 *                     node of this one, with its way; if it is a module's namespace, that target has its path
 *     end             all have one, or a step found nothing new
 *
 * A filter of 65,536 bits answers for most references that they lead to no node.  Several targets share the walks: a
 * node has a way to each.
 *
 * Between two walks other threads may have the GIL: a search of ten steps would pause the program ten times
 * as long as a census.  Then what was found may be freed, and something else may lie there.  So nodes are addresses,
 * which are compared and not followed; a path is believed only when each of its objects, the first of which is alive,
 * is seen to refer to the next.  Holding the nodes instead would change reference counts that the program looks at,
 * and free what it let go of in another thread. */
#include "root_path.h"

#include <errno.h>

#include "../_base/clock.h"
#include "../_base/record_table.h"
#include "../_interp/live_frames.h"
#include "heap_walk.h"

#define STARTS_MAX 1000 /* instances of a class to begin with */
#define NODES_MAX                                                                                  \
    ((size_t)200000) /* what refers to very much more is on no shortest path that anybody wants to read */
#define NODES_BYTES_MAX ((size_t)16 << 20)
#define FILTER_BITS 65536 /* a power of two */
#define PATH_MAX_OBJECTS 256
#define FOUND 1

/* From a node to one of the targets. */
struct way {
    struct node *next; /* what it refers to; NULL: the target */
    unsigned level;    /* steps to the target, and one; 0: it is not known to lead there */
};

struct node {
    PyObject *object;
    struct way ways[]; /* one for each target */
};

/* What was found for a target.  All is borrowed, and valid until the GIL is let go of. */
struct root {
    struct node *first, *last; /* the path's first one; the one met last */
    PyObject *root, *name;
    bool found;
};

struct search {
    PyObject *const *targets;
    size_t count;
    bool any_instance;
    PyObject *caller, *own;
    struct plus_record_table nodes, namespaces; /* the latter: modules by their dict */
    uint64_t filter[FILTER_BITS / 64];          /* which objects may be in `nodes` */
    unsigned level;
    size_t left, nodes_max; /* targets without a path; nodes */
    bool is_new;            /* something was met in this walk */
    struct root roots[PLUS_ROOT_PATHS_MAX];
};

static size_t
filter_bit(const void *address)
{
    return (size_t)(plus_address_hash(address) >> 48);
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

/* NULL: no memory. */
static struct node *
get_node(struct search *search, PyObject *op)
{
    struct node *node = plus_record_table_get(&search->nodes, op);
    size_t bit = filter_bit(op);

    search->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    return node;
}

static int
add_way(struct search *search, PyObject *op, size_t target, struct node *next)
{
    struct node *node = get_node(search, op);

    if (node == NULL) {
        return -ENOMEM;
    }
    node->ways[target] = (struct way){next, search->level + 1};
    search->roots[target].last = node;
    search->is_new = true;
    return 0;
}

/* ---- the first walk ------------------------------------------------------------------------------- */

static int
start_at(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct search *search = arg;

    (void)parent, (void)origin;
    if ((PyObject *)Py_TYPE(op) != search->targets[0]) {
        return 0;
    }
    return search->nodes.addresses.count == STARTS_MAX ? FOUND : add_way(search, op, 0, NULL);
}

static int
start(struct search *search)
{
    const struct plus_heap_visitor visitor = {start_at, NULL, search};

    if (search->any_instance) {
        int status = plus_heap_walk(&visitor, NULL);
        return status < 0 ? status : 0;
    }
    for (size_t i = 0; i < search->count; i++) {
        if (add_way(search, search->targets[i], i, NULL) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
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

static void
found(struct search *search, size_t target, struct node *first, PyObject *root, PyObject *name)
{
    struct root *each = &search->roots[target];

    each->first = first;
    each->root = root;
    each->name = name;
    each->found = true;
    search->left--;
}

static int
root_in_frame(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct search *search = arg;
    struct node *node = index < 0 ? NULL : find_node(search, value);

    if (node == NULL || is_own(search, code)) {
        return 0;
    }
    for (size_t i = 0; i < search->count; i++) {
        if (!search->roots[i].found && node->ways[i].level > 0) {
            found(search, i, node, (PyObject *)code,
                  PyTuple_GET_ITEM(code->co_localsplusnames, index));
        }
    }
    return search->left == 0 ? FOUND : 0;
}

/* ---- one step ------------------------------------------------------------------------------------- */

static int
step_back(PyObject *from, PyObject *to, void *arg)
{
    struct search *search = arg;
    struct node *node = find_node(search, to), *back = NULL;

    for (size_t i = 0; node != NULL && i < search->count; i++) {
        if (search->roots[i].found || node->ways[i].level != search->level) {
            continue;
        }
        if (back == NULL) {
            back = find_node(search, from);
        }
        if (back == NULL ? search->nodes.addresses.count >= search->nodes_max
                         : back->ways[i].level > 0) {
            continue;
        }
        if (add_way(search, from, i, node) < 0) {
            return -ENOMEM;
        }
        PyObject **module = plus_record_table_find(&search->namespaces, from);
        if (module != NULL) {
            found(search, i, search->roots[i].last, *module, Py_None);
        }
    }
    return search->left == 0 ? FOUND : 0;
}

/* FOUND when each target has a path; 0; or -ENOMEM. */
static int
walk_once(struct search *search)
{
    const struct plus_heap_visitor visitor = {NULL, step_back, search};
    int status = add_namespaces(search);

    if (status == 0) {
        status = plus_live_frames_visit(root_in_frame, search);
    }
    search->is_new = false;
    return status != 0 ? status : plus_heap_walk(&visitor, NULL);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* Objects that are held, and lie on the stack: nothing is made before all of them are. */
struct path {
    PyObject *root, *name;
    Py_ssize_t length;
    PyObject *objects[PATH_MAX_OBJECTS];
};

/* Where the path is told from.  A tuple with one reference that no object has may be one that another thread is just
 * filling, as tuple(iterable) does: a second reference would make that fail. */
static const struct node *
beginning_of(const struct root *root, size_t target)
{
    const struct node *first = root->first;
    const struct node *next = first == NULL ? NULL : first->ways[target].next;
    bool may_be_unfinished = root->root == Py_None && next != NULL &&
                             PyTuple_CheckExact(first->object) && Py_REFCNT(first->object) == 1;

    return may_be_unfinished ? next : first;
}

/* Whether it still leads from its first object, which is alive, to the target. */
static bool
is_there(const struct node *node, size_t target)
{
    for (const struct node *next; (next = node->ways[target].next) != NULL; node = next) {
        if (!plus_heap_refers(node->object, next->object)) {
            return false;
        }
    }
    return true;
}

static void
hold(struct path *path, const struct root *root, size_t target)
{
    path->root = Py_NewRef(root->root);
    path->name = Py_NewRef(root->name);
    path->length = 0;
    for (const struct node *node = beginning_of(root, target);
         node != NULL && path->length < PATH_MAX_OBJECTS; node = node->ways[target].next) {
        path->objects[path->length++] = Py_NewRef(node->object);
    }
}

/* A new tuple; lets go of what the path holds. */
static PyObject *
tuple_of(const struct path *path)
{
    PyObject *list = PyList_New(path->length);

    for (Py_ssize_t i = 0; i < path->length; i++) {
        if (list != NULL) {
            PyList_SET_ITEM(list, i, path->objects[i]);
        }
        else {
            Py_DECREF(path->objects[i]);
        }
    }
    return Py_BuildValue("(NNN)", path->root, path->name, list);
}

/* ---- one object ----------------------------------------------------------------------------------- */

static void
init(struct search *search, PyObject *const *targets, size_t count, PyObject *own)
{
    size_t record_bytes = sizeof(struct node) + count * sizeof(struct way);

    *search = (struct search){.targets = targets,
                              .count = count,
                              .caller = Py_None,
                              .own = own,
                              .nodes = {.record_bytes = record_bytes},
                              .namespaces = PLUS_RECORD_TABLE(PyObject *),
                              .left = count};
    search->nodes_max = NODES_BYTES_MAX / record_bytes;
    search->nodes_max = search->nodes_max < NODES_MAX ? search->nodes_max : NODES_MAX;
    for (size_t i = 0; i < count; i++) {
        search->roots[i].root = search->roots[i].name = Py_None;
    }
}

static void
clear(struct search *search)
{
    plus_record_table_clear(&search->nodes);
    plus_record_table_clear(&search->namespaces);
}

PyObject *
plus_root_path(PyObject *target, bool any_instance, PyObject *caller, PyObject *own)
{
    struct search search;
    struct path path;
    PyObject *result = NULL;

    init(&search, &target, 1, own);
    search.any_instance = any_instance;
    search.caller = caller;
    int status = start(&search);
    while (status == 0 && search.is_new) {
        search.level++;
        status = walk_once(&search);
    }
    if (status < 0) {
        PyErr_NoMemory();
    }
    else if (search.nodes.addresses.count == 0) {
        PyErr_SetString(PyExc_LookupError, "there is no object of this class");
    }
    else {
        struct root *root = &search.roots[0];
        root->first = root->found ? root->first : root->last; /* as far back as any */
        hold(&path, root, 0);
        result = tuple_of(&path);
    }
    clear(&search);
    return result;
}

/* ---- several, with pauses between ------------------------------------------------------------------ */

/* Puts into the list what was found in this walk; -1 with an exception. */
static int
take_paths(const struct search *search, bool *taken, PyObject *list)
{
    struct path *paths = PyMem_RawMalloc(search->count * sizeof *paths);
    size_t which[PLUS_ROOT_PATHS_MAX], count = 0;
    int status = 0;

    if (paths == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < search->count; i++) {
        if (search->roots[i].found && !taken[i]) {
            taken[i] = true;
            if (is_there(search->roots[i].first, i)) {
                which[count] = i;
                hold(&paths[count++], &search->roots[i], i);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *path = tuple_of(&paths[i]);
        status = path == NULL ? -1 : PyList_SetItem(list, (Py_ssize_t)which[i], path) | status;
    }
    PyMem_RawFree(paths);
    return status;
}

static void
note_pause(uint64_t *longest_ns, uint64_t since)
{
    uint64_t pause_ns = plus_now_ns() - since;

    *longest_ns = pause_ns > *longest_ns ? pause_ns : *longest_ns;
}

static int
search_all(struct search *search, PyObject *list, uint64_t *longest_ns)
{
    bool taken[PLUS_ROOT_PATHS_MAX] = {false};
    uint64_t since = plus_now_ns();
    int status = start(search);

    while (status == 0 && search->is_new) {
        if (search->level++ > 0) {
            note_pause(longest_ns, since);
            /* Modules may be gone when the others have had their turn. */
            plus_record_table_clear(&search->namespaces);
            Py_BEGIN_ALLOW_THREADS;
            Py_END_ALLOW_THREADS;
            since = plus_now_ns();
        }
        status = walk_once(search);
        if (status >= 0 && take_paths(search, taken, list) < 0) {
            return -1;
        }
    }
    note_pause(longest_ns, since);
    if (status < 0) {
        PyErr_NoMemory();
    }
    return status < 0 ? -1 : 0;
}

PyObject *
plus_root_paths(PyObject *targets, PyObject *own)
{
    struct search search;
    uint64_t longest_ns = 0;
    Py_ssize_t count = PyTuple_GET_SIZE(targets);
    PyObject *list = PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
    }
    if (list == NULL) {
        return NULL;
    }
    init(&search, &PyTuple_GET_ITEM(targets, 0), (size_t)count, own);
    if (search_all(&search, list, &longest_ns) < 0) {
        Py_CLEAR(list);
    }
    clear(&search);
    return list == NULL ? NULL : Py_BuildValue("(NK)", list, (unsigned long long)longest_ns);
}
