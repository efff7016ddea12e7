/* A client that is registered somewhere a thousand times is a thousand roots of 200 bytes each. "1,000 x method" would
 * say nothing, so a method counts with its function, and a tuple, a cell or a partial with its content. */
#include "together.h"

#include "../../_heap/left.h"
#include "../../_heap/references.h"

/* Objects begin at multiples of 8, so an object's address plus one of these distances is a key that no object has. */
enum { OF_FRAMES = 1, OF_UNREACHED, OF_HELD, OF_TUPLE, OF_CELL, OF_PARTIAL, OF_LEFT };
/* Frames have the key of a code object, subclasses that of a class: both may have the same distance. */
enum { OF_SUBCLASSES = OF_FRAMES };

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

/* Returns the nearest base of a garbage class that is not garbage: classes that a function makes again and again differ
 * in names, and their metaclass says nothing.  NULL: there is none but `object`. */
static PyObject *
kept_base_of(const struct plus_reach *owners, PyObject *op)
{
    PyTypeObject *base = PyType_Check(op) ? ((PyTypeObject *)op)->tp_base : NULL;
    uint32_t node;

    while (base != NULL &&
           (node = plus_heap_graph_node(owners->graph, (PyObject *)base)) != PLUS_NO_NODE &&
           owners->anchor[node] == PLUS_GARBAGE) {
        base = base->tp_base;
    }
    return base == &PyBaseObject_Type ? NULL : (PyObject *)base;
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
        PyObject *base = kept_base_of(owners, op);
        struct plus_together *row =
            base != NULL ? get(table, base, OF_SUBCLASSES) : get(table, of, OF_UNREACHED);
        status = count_node(owners, node, row);
        if (status == 0 && base != NULL) {
            row->in = "subclasses of";
        }
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

/* True for a module of sys.modules, which has names and is told by them.  C code may refer to it, too. */
static bool
is_imported(const struct plus_heap_graph *graph, uint32_t node)
{
    for (size_t i = 0; i < graph->modules && PyModule_Check(graph->objects[node]); i++) {
        if (graph->roots.nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static int
count_held(const struct plus_reach *owners, uint64_t most_bytes, struct plus_record_table *table)
{
    const struct plus_heap_graph *graph = owners->graph;
    int status = 0;

    for (size_t i = graph->named; i < graph->held && status == 0; i++) {
        uint32_t node = graph->roots.nodes[i];
        if (owners->parent[node] == PLUS_NO_NODE && owners->reached_bytes[node] < most_bytes &&
            !is_imported(graph, node)) {
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

static int
count_left(const struct plus_reach *owners, struct plus_record_table *table)
{
    const struct plus_left *left;

    for (size_t at = 0; (left = plus_record_table_next(&owners->graph->left, &at)) != NULL;) {
        const struct plus_left *head = plus_left_head(left);
        if (head->node != 0 || head->is_cached) {
            continue;
        }
        struct plus_together *row = get(table, (PyObject *)head->type, OF_LEFT);
        if (row == NULL) {
            return -ENOMEM;
        }
        row->bytes += left->bytes;
        row->objects++;
        row->count += head == left;
    }
    return 0;
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
