/* See dict_rows.h.  If two key sets had the same 64-bit hash, they would be counted as one; no memory is read by it. */
#include "dict_rows.h"

#define GROUPS 100000 /* limit of key sets; dicts with further ones are counted together */

static Py_ssize_t
rounded(Py_ssize_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

Py_ssize_t
plus_shared_dict_bytes(Py_ssize_t count)
{
    /* The order of insertion is kept in a byte for each value, in front of the values. */
    return 64 + rounded((count + 2 + 7) / 8 * 8 + 8 * count);
}

Py_ssize_t
plus_record_bytes(Py_ssize_t count)
{
    return rounded(16 + 8 * count);
}

Py_ssize_t
plus_compact_dict_bytes(Py_ssize_t count)
{
    /* Up to 14 entries have neither a header nor an index. */
    return 48 + (count <= 14 ? 16 * count : rounded(48 + 16 * count + count * 40 / 9));
}

Py_ssize_t
plus_compacted_bytes(PyObject *dict)
{
    Py_ssize_t bytes = plus_compact_dict_bytes(PyDict_GET_SIZE(dict));
    PyObject *key;
    Py_ssize_t at = 0;

    for (int looked_at = 0; looked_at < 8 && PyDict_Next(dict, &at, &key, NULL); looked_at++) {
        if (!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key) && !PyBytes_CheckExact(key) &&
            !PyFloat_CheckExact(key)) {
            return bytes + 8 * PyDict_GET_SIZE(dict);
        }
    }
    return bytes;
}

/* Returns the hash of the keys in their order, never 0; NULL: not all of them are strings. */
static const void *
hash_of(PyObject *dict)
{
    uint64_t hash = (uint64_t)PyDict_GET_SIZE(dict);
    PyObject *key;
    Py_ssize_t at = 0;

    while (PyDict_Next(dict, &at, &key, NULL)) {
        if (!PyUnicode_CheckExact(key)) {
            return NULL;
        }
        hash = (hash ^ (uint64_t)PyObject_Hash(key)) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (const void *)(uintptr_t)(hash | 1);
}

int
plus_dict_rows_count(struct plus_dict_rows_table *table, PyObject *dict, int by)
{
    struct plus_table own;
    Py_ssize_t keys = PyDict_GET_SIZE(dict);

    if (!PyDict_CheckExact(dict) || keys == 0 || keys > PLUS_ROW_KEYS ||
        !plus_table_of(dict, &own)) {
        return 0;
    }
    const void *hash = hash_of(dict);
    struct plus_dict_rows *rows = hash != NULL ? plus_record_table_find(&table->rows, hash) : NULL;

    if (rows == NULL && hash != NULL && table->groups < GROUPS) {
        rows = plus_record_table_add(&table->rows, hash);
        if (rows == NULL) {
            return -ENOMEM;
        }
        rows->keys = keys;
        table->groups++;
    }
    if (rows == NULL) {
        table->small_keys += by * keys;
        rows = &table->small;
    }
    if (by > 0) {
        rows->samples[rows->met++ % PLUS_ROW_SAMPLES] = dict;
    }
    rows->count += by;
    rows->size_bytes += by * own.size_bytes;
    return 0;
}

void
plus_dict_rows_finish(struct plus_dict_rows_table *table)
{
    struct plus_dict_rows *rows;

    for (size_t at = 0; (rows = plus_record_table_next(&table->rows, &at)) != NULL;) {
        if (rows->count > 0 && rows->count < PLUS_ROWS_LEAST) {
            table->small.count += rows->count;
            table->small.size_bytes += rows->size_bytes;
            table->small_keys += rows->count * rows->keys;
            table->small.samples[table->small.met++ % PLUS_ROW_SAMPLES] = rows->samples[0];
            rows->count = 0;
        }
    }
}
