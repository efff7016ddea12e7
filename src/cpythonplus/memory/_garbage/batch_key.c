/* What components that have one cause have in common, as a number.  Only the first of a kind is named, in
 * Python; the rest are counted under their key.
 *
 *     item        its class; of functions and frames the code, of tracebacks the instruction, of classes the name
 *     reference   hash(item of the source, item of the target, by which variable, attribute or key)
 *     component   hash(its references, sorted, each one once)
 *
 * Sorted, for the collector's order says nothing; each one once, for how many items a list has makes no other cause.
 * A class is known by its address, unless it is garbage itself: then by its name, as the next one lies elsewhere.  Code
 * is known by file, name and line, so that a function made anew each time is the same.  Positions in lists and
 * tuples, and keys of large dicts, are data and count for nothing.
 *
 * No Python code runs: only the hashes of exact strings are asked for, which have no method of their own.  Two
 * causes with one key are told as one; of 64 bits that are well mixed that is not to be expected. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include <frameobject.h>

#define DICT_KEYS_MAX 32 /* in larger dicts keys are data, not names */

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
    /* A subclass could have a __hash__ of its own. */
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

/* A class that is garbage itself comes at another address each time. */
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

static uint64_t
frame_hash(PyObject *op)
{
    PyCodeObject *code = PyFrame_GetCode((PyFrameObject *)op);
    uint64_t hash = code_hash((PyObject *)code);

    Py_XDECREF(code);
    return hash;
}

/* Which code it belongs to, or which class it is. */
static uint64_t
detail_hash(PyObject *op)
{
    if (PyFrame_Check(op)) {
        return frame_hash(op);
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

/* The key under which a small dict has the target. */
static uint64_t
key_hash(PyObject *dict, PyObject *target)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    if (PyDict_GET_SIZE(dict) > DICT_KEYS_MAX) {
        return 0;
    }
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (value == target) {
            return text_hash(key);
        }
    }
    return 0;
}

/* By which of its variables or attributes the source has the target; 0 where that says nothing. */
static uint64_t
label_hash(PyObject *source, PyObject *target, uint16_t place)
{
    if (PyDict_CheckExact(source)) {
        return key_hash(source, target);
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

/* Fills hashes with one for each reference within the component; NULL only counts. */
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
        /* Once each: how long a list is makes no other cause. */
        if (i == 0 || hashes[i] != hashes[i - 1]) {
            result = mix(result + hashes[i]);
        }
    }
    free(hashes);
    *key = result;
    return 0;
}
