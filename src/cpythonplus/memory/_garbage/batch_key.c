/* Hashes a component, so that components with one cause have one key.  Python code names only the first of a kind; the
 * others are counted under its key.
 *
 *     item        its class; of functions and frames the code, of tracebacks the instruction, of classes the name
 *     reference   hash(item of the source, item of the target, variable, attribute or key)
 *     component   hash(its references, sorted, without duplicates)
 *
 * References are sorted, because the collector's order is arbitrary.  Duplicates are dropped, because the number of
 * items in a list makes no other cause.  A class is identified by its address.  If the class is garbage itself, it is
 * identified by its name, because the next one has another address.  Code is identified by file, name and line, so
 * that a function made anew each time is the same.  Positions in lists and tuples, and keys of large dicts, are data
 * and are ignored.
 *
 * No Python code runs: only exact strings are hashed, which have no __hash__ of their own.  Two causes with one key
 * would be reported as one; with 64 well-mixed bits that is not to be expected. */
#include "batch.h"

#include <frameobject.h>

#define DICT_KEYS_MAX 32 /* keys of a larger dict are data, not names */

/* The finalizer of MurmurHash3 (Austin Appleby, public domain): each bit of the input moves every bit. */
static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ (x >> 33)) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ (x >> 33);
}

static uint64_t
text_hash(PyObject *text)
{
    /* A subclass could have its own __hash__. */
    return text != NULL && PyUnicode_CheckExact(text) ? (uint64_t)PyObject_Hash(text) : 1;
}

static uint64_t
name_hash(const char *name)
{
    uint64_t hash = strlen(name);

    for (; *name != '\0'; name++) {
        hash = hash * 31 + (unsigned char)*name;
    }
    return hash;
}

/* A class that is garbage itself has another address each time. */
static uint64_t
type_hash(const struct plus_batch *batch, PyTypeObject *type)
{
    if (plus_address_table_find(&batch->indices, type) != NULL) {
        return name_hash(type->tp_name);
    }
    return (uint64_t)(uintptr_t)type;
}

static uint64_t
code_hash(PyObject *op)
{
    if (op == NULL || !PyCode_Check(op)) {
        return 2;
    }
    PyCodeObject *code = (PyCodeObject *)op;

    return mix(text_hash(code->co_filename) ^ mix(text_hash(code->co_qualname))) +
           (uint64_t)code->co_firstlineno;
}

/* Hashes the code that the object belongs to, or the class that it is. */
static uint64_t
detail_hash(PyObject *op)
{
    if (PyFrame_Check(op)) {
        PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)op);
        uint64_t hash = code_hash((PyObject *)code);

        Py_XDECREF(code);
        return hash;
    }
    if (PyFunction_Check(op)) {
        return code_hash(((PyFunctionObject *)op)->func_code);
    }
    if (PyTraceBack_Check(op)) {
        return (uint64_t)((PyTracebackObject *)op)->tb_lasti;
    }
    return PyType_Check(op) ? name_hash(((PyTypeObject *)op)->tp_name) : 0;
}

static uint64_t
item_hash(const struct plus_batch *batch, uint32_t item)
{
    PyObject *op = batch->items[item];

    return mix(type_hash(batch, Py_TYPE(op)) + 3 * detail_hash(op));
}

/* Hashes the variable or attribute of the source that refers to the target; 0 if none is known. */
static uint64_t
label_hash(PyObject *source, PyObject *target, uint16_t place)
{
    if (PyDict_CheckExact(source)) {
        /* Hash the key that a small dict has for the target. */
        Py_ssize_t position = 0;
        PyObject *key, *value;

        if (PyDict_GET_SIZE(source) > DICT_KEYS_MAX) {
            return 0;
        }
        while (PyDict_Next(source, &position, &key, &value)) {
            if (value == target) {
                return text_hash(key);
            }
        }
        return 0;
    }
    if (PyList_Check(source) || PyTuple_Check(source) || PyDict_Check(source) ||
        PyAnySet_Check(source)) {
        return 0;
    }
    return place;
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Writes one hash for each reference within the component, and returns their number; with NULL it only counts. */
static size_t
hash_edges(const struct plus_batch *batch, uint32_t component, uint64_t *hashes)
{
    size_t count = 0;

    for (uint32_t i = batch->start[component]; i < batch->start[component + 1]; i++) {
        uint32_t node = batch->order[i];
        uint64_t source = hashes == NULL ? 0 : item_hash(batch, node);
        for (size_t j = batch->graph.first[node]; j < batch->graph.first[node + 1]; j++) {
            uint32_t target = batch->graph.target[j];
            if (batch->component[target] != component) {
                continue;
            }
            if (hashes != NULL) {
                uint64_t label =
                    label_hash(batch->items[node], batch->items[target], batch->place[j]);
                hashes[count] = mix(source + 5 * item_hash(batch, target) + 7 * label);
            }
            count++;
        }
    }
    return count;
}

int
plus_batch_key(const struct plus_batch *batch, uint32_t component, uint64_t *key)
{
    size_t count = hash_edges(batch, component, NULL);
    uint64_t *hashes = malloc((count + 1) * sizeof *hashes);
    uint64_t result = 0;

    if (hashes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    hash_edges(batch, component, hashes);
    qsort(hashes, count, sizeof *hashes, compare);
    for (size_t i = 0; i < count; i++) {
        /* Hash distinct references only, so that a list's length does not change the key. */
        if (i == 0 || hashes[i] != hashes[i - 1]) {
            result = mix(result + hashes[i]);
        }
    }
    free(hashes);
    *key = result;
    return 0;
}
