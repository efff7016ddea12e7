/* The binding of watches and of exceptions that live. */
#include "binding.h"

#include <frameobject.h>

#include "../_base/methods.h"
#include "../_base/raise.h"
#include "../_heap/graph.h"
#include "../_interp/frames/frame_variables.h"
#include "../_interp/objects/sizes.h"
#include "_garbage/batch.h"
#include "_garbage/guard.h"
#include "_garbage/held.h"

/* ---- the garbage of a collection --------------------------------------------------------------------- */

#define NO_CYCLE UINT32_MAX

/* By component: the objects that hang from it, and from no cycle before it. */
struct kept {
    uint32_t cycle; /* the component that it hangs from, or itself; NO_CYCLE: none */
    Py_ssize_t objects, size_bytes;
};

static void
hand_on(const struct plus_batch *batch, struct kept *kept, uint32_t node)
{
    uint32_t cycle = kept[batch->component[node]].cycle;

    for (size_t i = batch->graph.first[node]; i < batch->graph.first[node + 1]; i++) {
        struct kept *target = &kept[batch->component[batch->graph.target[i]]];
        if (target->cycle == NO_CYCLE) {
            target->cycle = cycle;
        }
    }
}

/* Processes components in the order in which they reach each other: the highest number first. */
static struct kept *
find_kept(const struct plus_batch *batch)
{
    struct kept *kept = calloc((size_t)batch->components + 1, sizeof *kept);

    if (kept == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (uint32_t c = 0; c < batch->components; c++) {
        kept[c].cycle = plus_batch_is_cycle(batch, c) ? c : NO_CYCLE;
    }
    for (uint32_t i = batch->graph.count; i-- > 0;) {
        uint32_t node = batch->order[i];
        uint32_t own = batch->component[node];
        if (kept[own].cycle == NO_CYCLE) {
            continue;
        }
        hand_on(batch, kept, node);
        struct kept *cycle = &kept[kept[own].cycle];
        cycle->objects += batch->leaves[node];
        cycle->size_bytes += batch->leaf_bytes[node];
        if (kept[own].cycle != own) {
            cycle->objects++;
            cycle->size_bytes += plus_object_bytes(batch->items[node]);
        }
    }
    return kept;
}

static PyObject *
members_of(const struct plus_batch *batch, uint32_t component)
{
    uint32_t start = batch->start[component];
    uint32_t count = batch->start[component + 1] - start;
    PyObject *members = PyList_New((Py_ssize_t)count);

    for (uint32_t i = 0; members != NULL && i < count; i++) {
        PyList_SET_ITEM(members, i, Py_NewRef(batch->items[batch->order[start + i]]));
    }
    return members;
}

static Py_ssize_t
bytes_of(const struct plus_batch *batch, uint32_t component)
{
    Py_ssize_t size = 0;

    for (uint32_t i = batch->start[component]; i < batch->start[component + 1]; i++) {
        size += plus_object_bytes(batch->items[batch->order[i]]);
    }
    return size;
}

/* The sums of the components with one key. */
struct tally {
    uint64_t key;
    uint32_t component; /* the first one */
    Py_ssize_t count, objects, size_bytes, kept_objects, kept_bytes;
};

struct tallies {
    struct plus_address_table places; /* key to index in each, plus one */
    struct tally *each;
    uint32_t count;
};

static int
add_up(const struct plus_batch *batch, const struct kept *kept, uint32_t component,
       struct tallies *tallies)
{
    uint64_t key;

    if (plus_batch_key(batch, component, &key) < 0) {
        return -1;
    }
    key += key == 0; /* a table cannot have 0 as a key */
    struct plus_address_slot *place =
        plus_address_table_get(&tallies->places, (void *)(uintptr_t)key);
    if (place == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (place->number == 0) {
        tallies->each[tallies->count++] = (struct tally){.key = key, .component = component};
        place->number = tallies->count;
    }
    struct tally *tally = &tallies->each[place->number - 1];
    tally->count++;
    tally->objects += (Py_ssize_t)(batch->start[component + 1] - batch->start[component]);
    tally->size_bytes += bytes_of(batch, component);
    tally->kept_objects += kept[component].objects;
    tally->kept_bytes += kept[component].size_bytes;
    return 0;
}

static int
add_all_up(const struct plus_batch *batch, struct tallies *tallies)
{
    struct kept *kept = find_kept(batch);
    int status = kept == NULL ? -1 : 0;

    for (uint32_t c = 0; status == 0 && c < batch->components; c++) {
        if (plus_batch_is_cycle(batch, c)) {
            status = add_up(batch, kept, c, tallies);
        }
    }
    free(kept);
    return status;
}

/* Adds a tally to the rows; with the members of its first component if the key is not known.  Returns 1 if it is
 * not. */
static int
add_row(const struct plus_batch *batch, const struct tally *tally, PyObject *known, PyObject *rows)
{
    PyObject *key = PyLong_FromUnsignedLongLong(tally->key), *row = NULL, *members = NULL;
    int has = key == NULL ? -1 : PyDict_Contains(known, key);

    if (has >= 0) {
        members = has ? Py_NewRef(Py_None) : members_of(batch, tally->component);
    }
    if (members != NULL) {
        row = Py_BuildValue("(OnnnnnO)", key, tally->count, tally->objects, tally->size_bytes,
                            tally->kept_objects, tally->kept_bytes, members);
    }
    int status = row == NULL || PyList_Append(rows, row) < 0 ? -1 : !has;
    Py_XDECREF(key);
    Py_XDECREF(members);
    Py_XDECREF(row);
    return status;
}

static PyObject *
rows_of(const struct plus_batch *batch, const struct tallies *tallies, PyObject *known,
        int *unknown)
{
    PyObject *rows = PyList_New(0);

    for (uint32_t i = 0; rows != NULL && i < tallies->count; i++) {
        int status = add_row(batch, &tallies->each[i], known, rows);
        *unknown |= status;
        if (status < 0) {
            Py_CLEAR(rows);
        }
    }
    return rows;
}

static PyObject *
make_rows(const struct plus_batch *batch, PyObject *known, int *unknown)
{
    struct tallies tallies = {.each = calloc((size_t)batch->components + 1, sizeof *tallies.each)};
    PyObject *rows = NULL;

    *unknown = 0;
    if (tallies.each == NULL) {
        PyErr_NoMemory();
    }
    else if (add_all_up(batch, &tallies) == 0) {
        rows = rows_of(batch, &tallies, known, unknown);
    }
    plus_address_table_clear(&tallies.places);
    free(tallies.each);
    return rows;
}

/* Returns the items with a tp_del, which stay in gc.garbage as without a watch. */
static PyObject *
uncollectable(PyObject *items)
{
    PyObject *kept = PyList_New(0);

    for (Py_ssize_t i = 0; kept != NULL && i < PyList_GET_SIZE(items); i++) {
        PyObject *op = PyList_GET_ITEM(items, i);
        if (Py_TYPE(op)->tp_del != NULL && PyList_Append(kept, op) < 0) {
            Py_CLEAR(kept);
        }
    }
    return kept;
}

/* Takes the items off the list and breaks their cycles, unless other objects refer to one of them. */
static int
clear_batch(struct plus_batch *batch, PyObject *list, Py_ssize_t start)
{
    bool garbage = plus_batch_is_garbage(batch);
    /* Copied, because destructors may change the list. */
    PyObject *items = PyList_GetSlice(list, start, PyList_GET_SIZE(list));
    PyObject *kept = items == NULL ? NULL : uncollectable(items);

    if (kept == NULL || PyList_SetSlice(list, start, PyList_GET_SIZE(list), kept) < 0) {
        Py_XDECREF(items);
        Py_XDECREF(kept);
        return -1;
    }
    batch->items = ((PyListObject *)items)->ob_item;
    if (garbage) {
        plus_batch_clear(batch);
    }
    Py_DECREF(kept);
    Py_DECREF(items);
    return garbage;
}

static PyObject *
memory_sort_garbage(PyObject *module, PyObject *args)
{
    struct plus_batch batch;
    Py_ssize_t start;
    PyObject *list, *known, *rows = NULL;
    int clear, unknown = 0, done = 0;

    if (!PyArg_ParseTuple(args, "O!nO!p:memory_sort_garbage", &PyList_Type, &list, &start,
                          &PyDict_Type, &known, &clear)) {
        return NULL;
    }
    if (plus_batch_init(&batch, list, start) == 0) {
        rows = make_rows(&batch, known, &unknown);
    }
    if (rows != NULL && unknown == 0 && clear) {
        done = clear_batch(&batch, list, start) < 0 ? -1 : 1;
    }
    plus_batch_free(&batch);
    if (rows == NULL || done < 0) {
        Py_XDECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NO)", rows, done ? Py_True : Py_False);
}

static PyObject *
memory_clear_garbage(PyObject *module, PyObject *args)
{
    struct plus_batch batch;
    Py_ssize_t start;
    PyObject *list;
    int status = -1;

    if (!PyArg_ParseTuple(args, "O!n:memory_clear_garbage", &PyList_Type, &list, &start)) {
        return NULL;
    }
    if (plus_batch_init(&batch, list, start) == 0) {
        status = clear_batch(&batch, list, start);
    }
    plus_batch_free(&batch);
    return status < 0 ? NULL : PyBool_FromLong(status);
}

PLUS_RETURNS(memory_guarded, plus_guarded(arg))

/* ---- exceptions that live ------------------------------------------------------------------------ */

static PyObject *
memory_exceptions_among(PyObject *module, PyObject *objects)
{
    if (!PyList_CheckExact(objects)) {
        PyErr_SetString(PyExc_TypeError, "memory_exceptions_among takes a list");
        return NULL;
    }
    return plus_exceptions_among(objects);
}

static PyObject *
memory_referrers_among(PyObject *module, PyObject *args)
{
    PyObject *objects, *targets;

    if (!PyArg_ParseTuple(args, "O!O!:memory_referrers_among", &PyList_Type, &objects, &PyList_Type,
                          &targets)) {
        return NULL;
    }
    return plus_referrers_among(objects, targets);
}

/* True if each edge of the graph leads to one of its nodes. targets: the number of edges that there is room for. */
static bool
is_whole(const struct plus_graph *graph, size_t targets)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->first[i] > graph->first[i + 1] || graph->first[i + 1] > targets) {
            return false;
        }
    }
    for (size_t i = graph->first[0]; i < graph->first[graph->count]; i++) {
        if (graph->target[i] >= graph->count) {
            return false;
        }
    }
    return true;
}

static PyObject *
memory_components(PyObject *module, PyObject *args)
{
    Py_buffer first, target;
    PyObject *result = NULL;

    if (!PyArg_ParseTuple(args, "y*y*:memory_components", &first, &target)) {
        return NULL;
    }
    size_t words = (size_t)first.len / sizeof(size_t);
    struct plus_graph graph = {(uint32_t)(words - 1), first.buf, target.buf};

    if (words == 0 || words > UINT32_MAX ||
        !is_whole(&graph, (size_t)target.len / sizeof(uint32_t))) {
        PyErr_SetString(PyExc_ValueError, "an edge leads nowhere");
    }
    else {
        result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(graph.count * sizeof(uint32_t)));
    }
    if (result != NULL &&
        plus_graph_components(&graph, (uint32_t *)(void *)PyBytes_AS_STRING(result)) < 0) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    PyBuffer_Release(&first);
    PyBuffer_Release(&target);
    return result;
}

static PyObject *
memory_traceback_holds(PyObject *module, PyObject *exception)
{
    Py_ssize_t objects, size_bytes;

    if (!PyExceptionInstance_Check(exception)) {
        PyErr_SetString(PyExc_TypeError, "memory_traceback_holds takes an exception");
        return NULL;
    }
    if (plus_traceback_holds(exception, &objects, &size_bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("(nn)", objects, size_bytes);
}

static PyObject *
memory_frame_variables(PyObject *module, PyObject *frame)
{
    if (!PyFrame_Check(frame)) {
        PyErr_SetString(PyExc_TypeError, "memory_frame_variables takes a frame");
        return NULL;
    }
    return plus_frame_variables(frame);
}

PLUS_RETURNS(memory_object_bytes, PyLong_FromSsize_t(plus_object_bytes(arg)))

PLUS_RETURNS(memory_refuse_free_threaded, plus_refuses_free_threaded() ? NULL : Py_NewRef(Py_None))

PyMethodDef plus_memory_methods[] = {
    PLUS_METHOD("memory_refuse_free_threaded", memory_refuse_free_threaded, METH_NOARGS,
                "$module, /",
                "Raise UnsupportedPlatform on a free-threaded build, whatever its GIL does."),
    PLUS_METHOD(
        "memory_sort_garbage", memory_sort_garbage, METH_VARARGS,
        "$module, garbage, start, known, clear, /",
        "Find the cycles among the objects garbage[start:], which nothing else refers to.\n\n"
        "Returns (rows, cleared): for the strongly connected components of one key (key,\n"
        "components, objects, bytes, objects that hang from them, their bytes, members of\n"
        "the first); members is None where the dict `known` has the key.  If it has all of them "
        "and `clear` is True, the\n"
        "objects are taken off the list and their cycles broken at once."),
    PLUS_METHOD("memory_clear_garbage", memory_clear_garbage, METH_VARARGS,
                "$module, garbage, start, /",
                "Take garbage[start:] off the list and break its cycles as the collector would.\n\n"
                "False, and nothing broken, if something else refers to one of the objects."),
    PLUS_METHOD(
        "memory_guarded", memory_guarded, METH_O, "$module, callback, /",
        "Return a callback for gc.callbacks that loses no exception of a signal handler.\n\n"
        "What `callback` raises on the main thread is raised again behind the collection;\n"
        "the callback is called again meanwhile."),
    PLUS_METHOD("memory_exceptions_among", memory_exceptions_among, METH_O, "$module, objects, /",
                "Return the exceptions in the list that have a traceback."),
    PLUS_METHOD("memory_referrers_among", memory_referrers_among, METH_VARARGS,
                "$module, objects, targets, /",
                "Return for each target the list of those objects that refer to it."),
    PLUS_METHOD("memory_components", memory_components, METH_VARARGS, "$module, first, target, /",
                "Return the strongly connected component of each node, as 32-bit numbers.\n\n"
                "Node i's edges lead to target[first[i]:first[i + 1]]; first is an array of 'L',\n"
                "target of 'I'.  A component's number is lower than those of all that reach it."),
    PLUS_METHOD("memory_traceback_holds", memory_traceback_holds, METH_O, "$module, exception, /",
                "Return how many objects, and bytes, only the exception's traceback holds."),
    PLUS_METHOD("memory_frame_variables", memory_frame_variables, METH_O, "$module, frame, /",
                "Return the frame's bound variables by name, leaving the frame as it is."),
    PLUS_METHOD("memory_object_bytes", memory_object_bytes, METH_O, "$module, op, /",
                "Return what the object itself takes, in bytes, without running Python code."),
    {NULL, NULL, 0, NULL},
};
