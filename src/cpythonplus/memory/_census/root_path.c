/* A breadth-first search, backwards: each walk over the heap finds the objects that refer to those found by the walk
 * before.  Rejected: searching forwards needs a note of the path for each object of the heap.
 *
 *     level 0         the targets (or up to 1,000 instances of a class) are nodes
 *     each step       looks for nodes in variables of frames; then walks: an object that refers to a node of the last
 *                     level becomes a node of this one, with its way; a module's namespace ends the path of that target
 *     end             all targets have a path, or a step found nothing new
 *
 * A filter of 65,536 bits tells for most references that they lead to no node.  Several targets share the walks: a
 * node has a way to each target.
 *
 * Paths to several targets are searched in a copy of the process.  Ten steps with the GIL held would pause the program
 * ten times as long as a census.  If the GIL were released between the steps, an object that was found might be freed
 * and another might take its address.  (Holding references to the nodes would change reference counts that the program
 * looks at, and could free an object in another thread than the program does.)  The copy answers with addresses, which
 * are compared and not followed: the first object is known to be alive, and the path is believed only if each object
 * is seen to refer to the next. */
#include "referrers.h"

#include "../../_base/memory/record_table.h"
#include "../../_base/process/clock.h"
#include "../../_heap/heap_copy.h"
#include "../../_heap/heap_walk.h"
#include "../../_interp/frames/live_frames.h"
#include "../../_interp/objects/gc_objects.h"
#include "../../_interp/objects/world.h"

#define STARTS_MAX 1000 /* instances of a class that the search begins with */
#define NODES_MAX                                                                                  \
    ((size_t)200000) /* if a search meets more nodes, no path is short enough to be worth reading */
#define NODES_BYTES_MAX ((size_t)16 << 20)
#define COPY_BYTES ((size_t)1 << 30) /* for nodes, and 1 % of the heap for each walk */
#define FILTER_BITS 65536            /* a power of two */
#define PATH_MAX_OBJECTS 256
#define FOUND 1

/* The way from a node to one of the targets. */
struct way {
    struct node *next; /* the node that this one refers to; NULL: this is the target */
    unsigned level;    /* steps to the target plus 1; 0: no way is known */
};

struct node {
    PyObject *object;
    struct way ways[]; /* one for each target */
};

/* The result for one target.  All pointers are borrowed, and valid until the GIL is released. */
struct root {
    struct node *first, *last; /* first node of the path; the node met last */
    PyObject *root, *name;
    int index; /* index of the variable; -1: a namespace */
    bool found;
};

struct search {
    PyObject *const *targets;
    size_t count;
    bool any_instance;
    PyObject *caller, *own;
    struct plus_record_table nodes, namespaces; /* namespaces: modules by their dict */
    uint64_t filter[FILTER_BITS / 64];          /* which objects may be in `nodes` */
    unsigned level;
    size_t left, nodes_max; /* left: targets without a path */
    bool is_new;            /* the current walk has found a new node */
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

/* Returns NULL if there is no memory. */
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
found(struct search *search, size_t target, struct node *first, PyObject *root, PyObject *name,
      int index)
{
    struct root *each = &search->roots[target];

    each->first = first;
    each->root = root;
    each->name = name;
    each->index = index;
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
                  PyTuple_GET_ITEM(code->co_localsplusnames, index), index);
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
            found(search, i, search->roots[i].last, *module, Py_None, -1);
        }
    }
    return search->left == 0 ? FOUND : 0;
}

/* Returns FOUND when each target has a path; 0; or -ENOMEM. */
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

/* Strong references, on the stack: no Python object is made before all of them are taken. */
struct path {
    PyObject *root, *name;
    Py_ssize_t length;
    PyObject *objects[PATH_MAX_OBJECTS];
};

/* Returns the first node of the path that is reported.  If a tuple has one reference and no object is known to refer to
 * it, another thread may be filling it, as tuple(iterable) does.  A second reference would make that fail, so such a
 * tuple is left out. */
static const struct node *
beginning_of(const struct root *root, size_t target)
{
    const struct node *first = root->first;
    const struct node *next = first == NULL ? NULL : first->ways[target].next;
    bool may_be_unfinished = root->root == Py_None && next != NULL &&
                             PyTuple_CheckExact(first->object) && Py_REFCNT(first->object) == 1;

    return may_be_unfinished ? next : first;
}

/* Returns a new tuple; releases the references of `path`. */
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

/* Returns 0; FOUND when each target has a path; or an error. */
static int
search_all(struct search *search)
{
    int status = plus_gc_objects_begin();

    if (status < 0) {
        return status;
    }
    status = start(search);
    while (status == 0 && search->is_new) {
        search->level++;
        status = walk_once(search);
    }
    plus_gc_objects_end();
    return status;
}

struct one {
    struct search search;
    struct path path;
};

/* Holds the path that it finds, before another thread may change it. */
static int
find_one(void *arg)
{
    struct one *it = arg;
    int status = search_all(&it->search);

    if (status >= 0 && it->search.nodes.addresses.count > 0) {
        struct root *root = &it->search.roots[0];
        root->first = root->found
                          ? root->first
                          : root->last; /* without a root, the longest path that was found */
        it->path.root = Py_NewRef(root->root);
        it->path.name = Py_NewRef(root->name);
        it->path.length = 0;
        for (const struct node *node = beginning_of(root, 0);
             node != NULL && it->path.length < PATH_MAX_OBJECTS; node = node->ways[0].next) {
            it->path.objects[it->path.length++] = Py_NewRef(node->object);
        }
    }
    return status;
}

PyObject *
plus_root_path(PyObject *target, bool any_instance, PyObject *caller, PyObject *own)
{
    struct one it;
    PyObject *result = NULL;

    init(&it.search, &target, 1, own);
    it.search.any_instance = any_instance;
    it.search.caller = caller;
    int status = plus_gc_objects_begin();

    if (status == 0) {
        status = plus_world_stopped(find_one, &it);
        plus_gc_objects_end();
    }
    if (status < 0) {
        PyErr_NoMemory();
    }
    else if (it.search.nodes.addresses.count == 0) {
        PyErr_SetString(PyExc_LookupError, "there is no object of this class");
    }
    else {
        result = tuple_of(&it.path);
    }
    clear(&it.search);
    return result;
}

/* ---- several targets, in a copy of the process ------------------------------------------------------ */

/* The copy's answer for one target: addresses, first to last. index -1: the first object is the namespace of a module;
 * else it is that variable of `code`. */
struct answer {
    uint64_t code;
    int64_t index;
    uint64_t length; /* 0: no path */
    uint64_t objects[PATH_MAX_OBJECTS];
};

static void
answer_of(const struct root *root, size_t target, struct answer *answer)
{
    *answer = (struct answer){(uint64_t)(uintptr_t)root->root, root->index, 0, {0}};
    if (!root->found) {
        return;
    }
    const struct node *node = root->first;

    while (node != NULL && answer->length < PATH_MAX_OBJECTS) {
        answer->objects[answer->length++] = (uint64_t)(uintptr_t)node->object;
        node = node->ways[target].next;
    }
    if (node != NULL) { /* too long for an answer */
        answer->length = 0;
    }
}

static PyObject *
answer_all(void *arg)
{
    struct search *search = arg;
    int status = search_all(search);
    PyObject *bytes =
        status < 0
            ? NULL
            : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(search->count * sizeof(struct answer)));

    for (size_t i = 0; bytes != NULL && i < search->count; i++) {
        struct answer *answers = (struct answer *)PyBytes_AS_STRING(bytes);
        answer_of(&search->roots[i], i, &answers[i]);
    }
    return bytes;
}

/* A path from the copy, verified in the original process. */
struct trial {
    const struct answer *answer;
    PyObject *name; /* borrowed; NULL: the frame is gone, or the variable has another value */
};

static int
is_variable(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct trial *trial = arg;
    const struct answer *answer = trial->answer;

    if ((uint64_t)(uintptr_t)code != answer->code || index != answer->index ||
        (uint64_t)(uintptr_t)value != answer->objects[0]) {
        return 0;
    }
    trial->name = PyTuple_GET_ITEM(code->co_localsplusnames, index);
    return FOUND;
}

/* True if the path still leads from its first object to the target.  Each object is alive, because the one before
 * refers to it. */
static bool
leads_to(const struct answer *answer, const PyObject *target)
{
    for (uint64_t i = 0; i + 1 < answer->length; i++) {
        if (!plus_heap_refers((PyObject *)(uintptr_t)answer->objects[i],
                              (PyObject *)(uintptr_t)answer->objects[i + 1])) {
            return false;
        }
    }
    return (uint64_t)(uintptr_t)target == answer->objects[answer->length - 1];
}

/* Returns false if the path is no longer one.  The modules in `search` are those of now. */
static bool
try_out(const struct search *search, const struct answer *answer, const PyObject *target,
        struct path *path)
{
    if (answer->length == 0 || answer->length > PATH_MAX_OBJECTS) {
        return false;
    }
    struct trial trial = {answer, Py_None};
    PyObject *first = (PyObject *)(uintptr_t)answer->objects[0], *root = NULL;

    if (answer->index >= 0) {
        root = (PyObject *)(uintptr_t)answer->code;
        trial.name = NULL;
        (void)plus_live_frames_visit(is_variable, &trial);
    }
    else {
        PyObject **module = plus_record_table_find(&search->namespaces, first);
        root = module == NULL ? NULL : *module;
    }
    if (root == NULL || trial.name == NULL || !leads_to(answer, target)) {
        return false;
    }
    path->root = Py_NewRef(root);
    path->name = Py_NewRef(trial.name);
    path->length = (Py_ssize_t)answer->length;
    for (uint64_t i = 0; i < answer->length; i++) {
        path->objects[i] = Py_NewRef((PyObject *)(uintptr_t)answer->objects[i]);
    }
    return true;
}

struct trials {
    const struct search *search;
    const struct answer *answers;
    struct path *paths;
    bool *is_path;
};

static int
try_all(void *arg)
{
    const struct trials *it = arg;

    for (size_t i = 0; i < it->search->count; i++) {
        it->is_path[i] =
            try_out(it->search, &it->answers[i], it->search->targets[i], &it->paths[i]);
    }
    return 0;
}

/* Takes the references of all paths before it makes the first tuple, because that may let other threads run. */
static PyObject *
list_of(struct search *search, const struct answer *answers)
{
    struct path *paths = PyMem_RawMalloc(search->count * sizeof *paths);
    bool is_path[PLUS_ROOT_PATHS_MAX] = {false};
    PyObject *list = NULL;

    if (paths == NULL || add_namespaces(search) < 0) {
        PyMem_RawFree(paths);
        return PyErr_NoMemory();
    }
    struct trials trials = {search, answers, paths, is_path};

    (void)plus_world_stopped(try_all, &trials);
    list = PyList_New((Py_ssize_t)search->count);
    for (size_t i = 0; i < search->count; i++) {
        PyObject *told = is_path[i] ? tuple_of(&paths[i]) : Py_NewRef(Py_None);

        if (list == NULL || told == NULL) {
            Py_XDECREF(told);
            Py_CLEAR(list);
            continue;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, told);
    }
    PyMem_RawFree(paths);
    return list;
}

PyObject *
plus_root_paths(PyObject *targets, PyObject *own, int seconds)
{
    struct search search;
    uint64_t pause_ns = 0;
    const int keep[] = {-1, -1};
    PyObject *list = NULL;

    init(&search, &PyTuple_GET_ITEM(targets, 0), (size_t)PyTuple_GET_SIZE(targets), own);
    PyObject *bytes = plus_heap_copy(answer_all, &search, keep, seconds, COPY_BYTES, &pause_ns);

    if (bytes != NULL &&
        PyBytes_GET_SIZE(bytes) != (Py_ssize_t)(search.count * sizeof(struct answer))) {
        PyErr_BadInternalCall(); /* cannot happen: the copy runs the same code */
    }
    else if (bytes != NULL) {
        uint64_t since = plus_now_ns();
        list = list_of(&search, (const struct answer *)PyBytes_AS_STRING(bytes));
        uint64_t took_ns = plus_now_ns() - since;
        pause_ns = took_ns > pause_ns ? took_ns : pause_ns;
    }
    Py_XDECREF(bytes);
    clear(&search);
    return list == NULL ? NULL : Py_BuildValue("(NK)", list, (unsigned long long)pause_ns);
}
