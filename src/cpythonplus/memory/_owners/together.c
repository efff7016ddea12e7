/* A client that is registered somewhere a thousand times is a thousand roots of 200 bytes each. "1,000 x method" would
 * say nothing, so a method counts with its function, and a tuple, a cell or a partial with its content.
 *
 * The collector does not know strings, numbers, or arrays of numpy.  If nothing refers to such an object, no walk
 * meets it, but its block is allocated.  The block begins with a reference count and the address of a class: both are
 * compared with known values, and no address is followed. */
#include "together.h"

#include <errno.h>
#include <string.h>

#include "../../_heap/references.h"

#define POOL_BLOCKS (PLUS_POOL_BYTES / PLUS_BLOCK_STEP)

/* Objects begin at multiples of 8, so an object's address plus one of these distances is a key that no object has. */
enum { OF_FRAMES = 1, OF_UNREACHED, OF_HELD, OF_TUPLE, OF_CELL, OF_PARTIAL, OF_LEFT };

static const void *
key_of(const void *object, int distance)
{
    return (const char *)object + distance;
}

/* Returns NULL if there is no memory. */
static struct plus_together *
get(struct plus_record_table *table, PyObject *of, int distance)
{
    struct plus_together *row = plus_record_table_get(table, key_of(of, distance));

    if (row != NULL && row->of == NULL) {
        row->of = of;
        row->in = row->by = "";
    }
    return row;
}

static int
count_node(const struct plus_reach *owners, uint32_t node, struct plus_together *row)
{
    if (row == NULL) {
        return -ENOMEM;
    }
    row->bytes += owners->reached_bytes[node];
    row->objects += owners->reached_objects[node];
    row->count++;
    return 0;
}

static int
count_frames(const struct plus_reach *owners, struct plus_record_table *table)
{
    int status = 0;

    for (uint32_t node = 1; node <= owners->graph->frames && status == 0; node++) {
        PyObject *code = (PyObject *)owners->graph->codes[node - 1];
        status = count_node(owners, node, get(table, code, OF_FRAMES));
    }
    return status;
}

static int
count_unreached(const struct plus_reach *owners, struct plus_record_table *table)
{
    const struct plus_heap_graph *graph = owners->graph;
    int status = 0;

    for (size_t i = graph->held; i < graph->roots.count && status == 0; i++) {
        uint32_t node = graph->roots.nodes[i];
        PyObject *op = graph->objects[node];
        PyObject *of = PyFunction_Check(op) ? PyFunction_GET_CODE(op) : (PyObject *)Py_TYPE(op);
        status = count_node(owners, node, get(table, of, OF_UNREACHED));
    }
    return status;
}

/* ---- what C code holds ------------------------------------------------------------------------------- */

static int
take_function(PyObject *name, const char *field, PyObject *value, void *arg)
{
    bool found = field != NULL && strcmp(field, "func") == 0;

    (void)name;
    if (found) {
        *(PyObject **)arg = value;
    }
    return found;
}

static bool
is_telling(PyObject *op)
{
    return PyFunction_Check(op) || PyMethod_Check(op) ||
           PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_HEAPTYPE);
}

/* Returns the content of a tuple, a cell, a partial, or a method of a built-in class; NULL: it has none. */
static PyObject *
content_of(PyObject *op)
{
    PyObject *content = NULL;

    if (PyCell_Check(op)) {
        return PyCell_GET(op);
    }
    if (PyTuple_CheckExact(op)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(op); i++) {
            PyObject *item = PyTuple_GET_ITEM(op, i);
            if (item != NULL && (content == NULL || (is_telling(item) && !is_telling(content)))) {
                content = item;
            }
        }
    }
    else if (PyCFunction_Check(op)) {
        content = PyCFunction_GET_SELF(op);
        return content != NULL && PyModule_Check(content) ? NULL : content;
    }
    else if (strcmp(Py_TYPE(op)->tp_name, "functools.partial") == 0) {
        (void)plus_attributes_visit(op, take_function, &content);
    }
    return content;
}

static PyObject *
code_of_generator(PyObject *op)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyCodeObject *code =
        PyGen_GetCode((PyGenObject *)op); /* never released: the copy ends anyway */

    return (PyObject *)code;
#else
    return (PyObject *)((PyGenObject *)op)->gi_code;
#endif
}

/* Returns the code object or class that stands for an object. *in: how the object refers to it. */
static PyObject *
stands_for(PyObject *op, const char **in, int *distance)
{
    PyObject *content = content_of(op);

    *distance = OF_HELD;
    *in = "";
    if (content != NULL) {
        *distance = PyCell_Check(op) ? OF_CELL : PyTuple_Check(op) ? OF_TUPLE : OF_PARTIAL;
        *in = Py_TYPE(op)->tp_name;
        op = content;
    }
    if (PyMethod_Check(op)) {
        *in = content == NULL ? "method" : *in;
        op = PyMethod_GET_FUNCTION(op);
    }
    if (PyFunction_Check(op)) {
        *in = content == NULL && **in == '\0' ? "function" : *in;
        return PyFunction_GET_CODE(op);
    }
    if (PyGen_CheckExact(op) || PyCoro_CheckExact(op)) {
        *in = content == NULL ? Py_TYPE(op)->tp_name : *in;
        return code_of_generator(op);
    }
    return (PyObject *)Py_TYPE(op);
}

PyObject *
plus_together_code(PyObject *op, const char **in)
{
    int distance;
    PyObject *of = stands_for(op, in, &distance);

    return PyCode_Check(of) ? of : NULL;
}

static int
count_held(const struct plus_reach *owners, uint64_t most_bytes, struct plus_record_table *table)
{
    const struct plus_heap_graph *graph = owners->graph;
    int status = 0;

    for (size_t i = graph->named; i < graph->held && status == 0; i++) {
        uint32_t node = graph->roots.nodes[i];
        if (owners->parent[node] == PLUS_NO_NODE && owners->reached_bytes[node] < most_bytes) {
            int distance;
            const char *in;
            PyObject *of = stands_for(graph->objects[node], &in, &distance);
            struct plus_together *row = get(table, of, distance);
            status = count_node(owners, node, row);
            if (status == 0) {
                const struct plus_keeper *keeper =
                    plus_record_table_find(&graph->keepers, graph->objects[node]);
                const char *by = keeper == NULL ? "" : keeper->by;
                row->in = in;
                row->by = row->count == 1 || strcmp(row->by, by) == 0 ? by : "";
                row->has_names |= keeper != NULL && keeper->number != 0;
            }
        }
    }
    return status;
}

const void *
plus_together_key(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint32_t holder = owners->parent[node];
    PyObject *op = graph->objects[node];
    const char *in;
    int distance;

    if (op == NULL || (holder == PLUS_NO_NODE && PyModule_Check(op)) ||
        (holder != PLUS_NO_NODE && graph->objects[holder] != NULL)) {
        return NULL;
    }
    if (holder == PLUS_NO_NODE) {
        PyObject *of = stands_for(op, &in, &distance); /* sets `distance` */
        return key_of(of, distance);
    }
    /* The key of one variable in all frames of a function.  Variables with values of one class share a key. */
    uintptr_t code = (uintptr_t)graph->codes[holder - 1], type = (uintptr_t)Py_TYPE(op);
    return key_of((const void *)(code ^ type << 16), OF_FRAMES);
}

/* ---- left objects ------------------------------------------------------------------------------------ */

static bool
may_be_count(uint64_t word)
{
    /* The upper bits are 0, unlike those of an address.  3.14 has flags in the upper 16 bits. */
    return (uint32_t)word != 0 && (word >> 32 & 0xffff) == 0;
}

/* Returns the least number of bytes that an object of a class takes.  A string may take less than its tp_basicsize,
 * which includes the pointers of a non-compact string. */
static Py_ssize_t
least_bytes(const PyTypeObject *type)
{
    return type == &PyUnicode_Type ? (Py_ssize_t)sizeof(PyASCIIObject) : type->tp_basicsize;
}

/* Returns the class of an object that may begin at `at` and that no walk has met; NULL: there is none. bytes: the rest
 * of the block. */
static PyObject *
class_at(const struct plus_reach *owners, const char *at, size_t bytes, bool has_gc_header)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint64_t words[2];

    memcpy(words, at, sizeof words);
    uint32_t node = may_be_count(words[0]) && words[1] != 0
                        ? plus_heap_graph_node(graph, (PyObject *)(uintptr_t)words[1])
                        : PLUS_NO_NODE;
    PyObject *type = node == PLUS_NO_NODE ? NULL : graph->objects[node];

    return type != NULL && PyType_Check(type) &&
                   PyType_IS_GC((PyTypeObject *)type) == has_gc_header &&
                   least_bytes((PyTypeObject *)type) <= (Py_ssize_t)bytes &&
                   plus_granules_has(&owners->graph->unlisted, at) == 0
               ? type
               : NULL;
}

/* Counts the object in a block, if there is one.  The collector's header, two words, begins with zero if the collector
 * has untracked a tuple or a dict. */
static int
count_block(const struct plus_reach *owners, const char *block, size_t bytes,
            struct plus_record_table *table)
{
    size_t header = 2 * sizeof(uint64_t);
    uint64_t first;

    memcpy(&first, block, sizeof first);
    PyObject *type = first != 0            ? class_at(owners, block, bytes, false)
                     : bytes >= 2 * header ? class_at(owners, block + header, bytes - header, true)
                                           : NULL;

    if (type == NULL) {
        return 0;
    }
    struct plus_together *row = get(table, type, OF_LEFT);

    if (row == NULL) {
        return -ENOMEM;
    }
    row->bytes += bytes;
    row->objects++;
    row->count++;
    return 0;
}

static int
count_pool(const struct plus_reach *owners, uintptr_t pool, struct plus_record_table *table)
{
    struct plus_pool_header header;
    bool is_free[POOL_BLOCKS] = {false};
    int status = 0;

    if (!plus_read_memory(plus_pool_header_at(pool), &header, sizeof header) ||
        !plus_pool_is_used(&header)) {
        return 0;
    }
    size_t bytes = plus_pool_block_bytes(&header), first = sizeof header;
    uintptr_t block = (uintptr_t)header.free_block;

    for (size_t i = 0;
         i < POOL_BLOCKS && block >= pool + first && block + bytes <= pool + PLUS_POOL_BYTES; i++) {
        is_free[(block - pool - first) / bytes] = true;
        memcpy(&block, (const void *)block, sizeof block);
    }
    for (size_t at = first; at < header.next_offset && at + bytes <= PLUS_POOL_BYTES && status == 0;
         at += bytes) {
        if (!is_free[(at - first) / bytes]) {
            status = count_block(owners, (const char *)(pool + at), bytes, table);
        }
    }
    return status;
}

static int
count_left(const struct plus_reach *owners, struct plus_record_table *table)
{
    int status = 0;

    for (size_t i = 0; i < owners->arenas->count && status == 0; i++) {
        const struct plus_arena *arena = &owners->arenas->list[i];
        for (uintptr_t pool = plus_arena_pools(arena->start); pool < arena->carved && status == 0;
             pool += PLUS_POOL_BYTES) {
            status = count_pool(owners, pool, table);
        }
    }
    return status;
}

int
plus_together_count(const struct plus_reach *owners, enum plus_together_kind kind,
                    uint64_t most_bytes, struct plus_record_table *table)
{
    *table = PLUS_RECORD_TABLE(struct plus_together);
    switch (kind) {
    case PLUS_TOGETHER_FRAMES:
        return count_frames(owners, table);
    case PLUS_TOGETHER_UNREACHED:
        return count_unreached(owners, table);
    case PLUS_TOGETHER_HELD:
        return count_held(owners, most_bytes, table);
    default:
        return count_left(owners, table);
    }
}
