/* An object that no walk meets still has its block, which is in use.  The block begins with a reference count and the
 * address of a class: both are compared with known values.  A dict, a tuple, a code object or an array that is left
 * stands for what it alone refers to.  No other address is followed.
 *
 * Many objects of C code have a part that their tp_traverse leaves out, since it can be in no cycle: the bytes of an
 * io.BytesIO, the texts of an io.StringIO.  A word of such an object is the address of the part. */
#include "left.h"

#include <errno.h>
#include <string.h>

#include "../_base/memory/copy_memory.h"
#include "../_interp/objects/arenas.h"
#include "../_interp/objects/interpreter_words.h"
#include "../_interp/objects/object_parts.h"
#include "../_interp/objects/referents.h"
#include "c_blocks.h"

#define POOL_BLOCKS (PLUS_POOL_BYTES / PLUS_BLOCK_STEP)
#define MOST_HOLDERS 16
/* glibc keeps freed blocks of up to so many bytes in bins that leave the class of the object in place.  In a program that is
 * not position-independent the word in front of it then looks like a reference count. */
#define MOST_FAST 160

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
static PyTypeObject *
class_at(struct plus_heap_graph *graph, const char *at, size_t bytes, bool has_gc_header)
{
    uint64_t words[2];

    memcpy(words, at, sizeof words);
    uint32_t node = may_be_count(words[0]) && words[1] != 0
                        ? plus_heap_graph_node(graph, (PyObject *)(uintptr_t)words[1])
                        : PLUS_NO_NODE;
    PyObject *type = node == PLUS_NO_NODE ? NULL : graph->objects[node];

    return type != NULL && PyType_Check(type) &&
                   PyType_IS_GC((PyTypeObject *)type) == has_gc_header &&
                   least_bytes((PyTypeObject *)type) <= (Py_ssize_t)bytes &&
                   plus_granules_has(&graph->unlisted, at) == 0
               ? (PyTypeObject *)type
               : NULL;
}

/* Returns the bytes of an object beside its own block: the table of a dict, the data of an array. */
static uint64_t
bytes_beside(PyObject *op)
{
    bool is_array = plus_is_numpy_array_type(Py_TYPE(op));

    if (!PyDict_CheckExact(op) && !is_array) {
        return 0;
    }
    struct plus_measuring how = plus_measuring_of(Py_TYPE(op));
    struct plus_parts parts = plus_parts_of(&how, op);

    PyErr_Clear();
    return (uint64_t)(is_array ? parts.object - Py_TYPE(op)->tp_basicsize
                               : parts.table + parts.values);
}

/* The interpreter's dict of interned strings, which refers to each by itself and holds none. */
static bool
is_of_interned(PyObject *op)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;

    return PyDict_CheckExact(op) && PyDict_Next(op, &position, &key, &value) && key == value &&
           PyUnicode_CheckExact(key) && PyUnicode_CHECK_INTERNED(key);
}

/* Notes the object in a block, if there is one.  The collector's header, two words, begins with zero if the collector
 * has untracked a tuple or a dict. */
static int
note_block(const char *block, size_t bytes, void *arg)
{
    struct plus_heap_graph *graph = arg;
    size_t header = 2 * sizeof(uint64_t);
    uint64_t first;

    memcpy(&first, block, sizeof first);
    const char *at = first != 0 ? block : block + header;
    PyTypeObject *type = first != 0 || bytes >= 2 * header
                             ? class_at(graph, at, bytes - (size_t)(at - block), first == 0)
                             : NULL;

    if (type == NULL || is_of_interned((PyObject *)at)) {
        return 0;
    }
    struct plus_left *left = plus_record_table_get(&graph->left, at);

    if (left == NULL) {
        return -ENOMEM;
    }
    uint64_t beside = bytes_beside((PyObject *)at);

    left->large_bytes = (beside > graph->pooled ? beside : 0) + (bytes > graph->pooled ? bytes : 0);
    left->type = type;
    left->bytes = bytes + beside;
    return 0;
}

static int
note_pool(struct plus_heap_graph *graph, uintptr_t pool)
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
            status = note_block((const char *)(pool + at), bytes, graph);
        }
    }
    return status;
}

/* ---- what left objects refer to ---------------------------------------------------------------------- */

struct referring {
    struct plus_heap_graph *graph;
    const struct plus_left *from;
};

static int
note_holder(PyObject *to, void *arg)
{
    const struct referring *it = arg;
    struct plus_left *left = plus_record_table_find(&it->graph->left, to);

    if (left != NULL && left->holder == NULL && left != it->from &&
        plus_left_head(it->from) != left) {
        left->holder = it->from;
    }
    return 0;
}

const struct plus_left *
plus_left_head(const struct plus_left *left)
{
    for (int i = 0; i < MOST_HOLDERS && left->holder != NULL; i++) {
        left = left->holder;
    }
    return left;
}

/* The words of an object that may be addresses of its parts, with its head; 0: it is no object of C code. */
static size_t
count_words(PyObject *op)
{
    return plus_is_class_of_c_code(Py_TYPE(op))
               ? (size_t)Py_TYPE(op)->tp_basicsize / sizeof(PyObject *)
               : 0;
}

/* Objects of C code come first: one that is in a cycle with its dict says more than the dict. */
static void
find_holders(struct plus_heap_graph *graph)
{
    const struct plus_left *left;

    for (size_t at = 0; (left = plus_record_table_next(&graph->left, &at)) != NULL;) {
        PyObject *op = (PyObject *)left->object;
        struct referring it = {graph, left};

        for (size_t i = sizeof(PyObject) / sizeof op; i < count_words(op); i++) {
            (void)note_holder(((PyObject **)op)[i], &it);
        }
    }
    for (size_t at = 0; (left = plus_record_table_next(&graph->left, &at)) != NULL;) {
        PyObject *op = (PyObject *)left->object;
        struct referring it = {graph, left};

        if (PyDict_CheckExact(op) || PyTuple_CheckExact(op) || PyCode_Check(op) ||
            plus_is_numpy_array_type(Py_TYPE(op))) {
            (void)plus_referents_visit(op, note_holder, &it);
        }
    }
}

/* ---- parts of objects of C code ---------------------------------------------------------------------- */

static int
is_same(PyObject *to, void *arg)
{
    return to == arg;
}

/* True if an object that C code or the interpreter seems to hold may be a part of `op`. */
static bool
is_part(struct plus_heap_graph *graph, PyObject *op, PyObject *part)
{
    uint32_t node = plus_heap_graph_node(graph, part);

    if (node == PLUS_NO_NODE || part == op) {
        return false;
    }
    /* A cycle that leads through an object without tp_traverse is no garbage: nobody frees it. */
    bool is_for_ever = PyObject_IS_GC(part) && !PyObject_IS_GC(op);

    return !is_for_ever && !PyModule_Check(part) && !PyType_Check(part) &&
           plus_heap_graph_is_held(graph, node) &&
           plus_record_table_find(&graph->keepers, part) == NULL &&
           !plus_referents_visit(op, is_same, part);
}

int
plus_parts_connect(struct plus_heap_graph *graph)
{
    int status = 0;

    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        PyObject *op = graph->objects[node], **words = (PyObject **)op;
        size_t count = count_words(op);

        for (size_t i = sizeof(PyObject) / sizeof *words; i < count && status == 0; i++) {
            if (is_part(graph, op, words[i])) {
                status =
                    plus_heap_graph_add_edge(graph, node, plus_heap_graph_node(graph, words[i]));
            }
        }
    }
    return status;
}

/* The left object that a word of `op` is the address of, or NULL.  From 3.14 on an io.StringIO refers to its text by a
 * structure of the interpreter, PyUnicodeWriter, that begins with the text's address. */
static struct plus_left *
left_behind(struct plus_heap_graph *graph, PyObject *op, PyObject *word)
{
    struct plus_left *left = word == NULL ? NULL : plus_record_table_find(&graph->left, word);
    PyObject *text;

    if (left == NULL && word != NULL && PY_VERSION_HEX >= 0x030E0000 &&
        strcmp(Py_TYPE(op)->tp_name, "_io.StringIO") == 0 &&
        plus_read_memory((uintptr_t)word, &text, sizeof text) && text != NULL) {
        left = plus_record_table_find(&graph->left, text);
    }
    return left;
}

static bool
note_cached(uintptr_t word, void *arg)
{
    struct plus_heap_graph *graph = arg;
    struct plus_left *left = plus_record_table_find(&graph->left, (const void *)word);

    if (left != NULL && left->type == &PyUnicode_Type) {
        left->is_cached = true;
    }
    return false;
}

/* The interpreter's cache of methods keeps thousands of names that getattr() has been asked for: those that a program
 * makes at run time are nowhere else.  A word that is the address of something else may be left over in a free list. */
static int
find_cached(struct plus_heap_graph *graph)
{
    struct plus_interpreter_words state;
    int status = plus_interpreter_words_read(&state);

    if (status == 0) {
        plus_interpreter_words_ask(&state, note_cached, graph);
        plus_free(state.words);
    }
    return status;
}

static void
find_parts(struct plus_heap_graph *graph)
{
    for (uint32_t node = graph->frames + 1; node < graph->edges.count; node++) {
        PyObject *op = graph->objects[node], **words = (PyObject **)op;
        size_t count = count_words(op);

        for (size_t i = sizeof(PyObject) / sizeof *words; i < count; i++) {
            struct plus_left *left = left_behind(graph, op, words[i]);
            bool is_first = left != NULL && (left->node == 0 || op < graph->objects[left->node]);
            if (is_first && left->holder == NULL) { /* always the same of several objects */
                left->node = node;
            }
        }
    }
    /* A class with a __sizeof__ of its own has counted its parts there. */
    struct plus_left *left;

    for (size_t at = 0; (left = plus_record_table_next(&graph->left, &at)) != NULL;) {
        uint32_t node = plus_left_head(left)->node;
        uint64_t bytes = node != 0 || left->is_cached ? left->bytes : 0;

        if (node == 0 || plus_measuring_of(Py_TYPE(graph->objects[node])).measure != PLUS_TOLD) {
            graph->large_bytes += left->large_bytes;
            graph->total_bytes += bytes;
            graph->bytes[node] += node != 0 ? bytes : 0;
        }
    }
}

int
plus_left_find(struct plus_heap_graph *graph, const struct plus_arenas *arenas, bool is_glibc)
{
    size_t least = graph->pooled > MOST_FAST ? graph->pooled + 1 : MOST_FAST + 1;
    int status = is_glibc ? plus_c_blocks_visit(least, note_block, graph) : 0;

    for (size_t i = 0; i < arenas->count && status == 0; i++) {
        const struct plus_arena *arena = &arenas->list[i];
        for (uintptr_t pool = plus_arena_pools(arena->start); pool < arena->carved && status == 0;
             pool += PLUS_POOL_BYTES) {
            status = note_pool(graph, pool);
        }
    }
    find_holders(graph);
    if (status == 0) {
        status = find_cached(graph);
    }
    find_parts(graph);
    return status;
}
