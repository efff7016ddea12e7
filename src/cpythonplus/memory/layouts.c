/* Include/internal/pycore_dict.h and pycore_object.h:
 *
 *      -4           -3              -2 -1     0            tp_basicsize
 * 3.11 values*      dict*           collector object
 * 3.12 weak refs    dict* or values* - 1    object
 * 3.13 weak refs    dict*           collector object       capacity, size, embedded, valid | values | order
 *
 * Up to 3.12 the values are a block of their own: order | size | bytes of these | values. */
#include "layouts.h"

#include <stddef.h>
#include <stdint.h>

#include "../_base/pools.h"
#include "sizes.h"

#define WORD ((Py_ssize_t)sizeof(void *))
#define ROUND_UP(bytes) (((bytes) + WORD - 1) & ~(WORD - 1))
#define GENERAL_KEYS 0 /* of any kind, with their hashes */
#define ATTRIBUTES_MAX 30

struct key_table {
    Py_ssize_t owners;
    uint8_t log2_size, log2_index_bytes, kind;
    uint32_t version;
    Py_ssize_t usable, entries;
    char indices[];
};

struct general_entry {
    Py_hash_t hash;
    PyObject *key, *value;
};

struct name_entry {
    PyObject *key, *value;
};

#if PY_VERSION_HEX >= 0x030D0000
struct inline_values {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[];
};
#endif

static struct plus_layouts verified;

/* ---- dicts ---------------------------------------------------------------------------------------- */

static Py_ssize_t
table_bytes(const struct key_table *table)
{
    size_t entry =
        table->kind == GENERAL_KEYS ? sizeof(struct general_entry) : sizeof(struct name_entry);
    size_t usable = ((size_t)2 << table->log2_size) / 3;

    return (Py_ssize_t)(sizeof(*table) + ((size_t)1 << table->log2_index_bytes) + usable * entry);
}

#if PY_VERSION_HEX >= 0x030D0000
static Py_ssize_t
values_bytes_of(const struct inline_values *values)
{
    return ROUND_UP((Py_ssize_t)values->capacity) + (values->capacity + 1) * WORD;
}
#else
/* How many values there is room for is not written down.  It is what the class had left for keys when the
 * instance was made, which falls by one with each of its first instances; the block in front, which was made for as
 * many, tells it to within 8. */
static Py_ssize_t
values_bytes_of(PyObject *const *values, const struct key_table *table)
{
    Py_ssize_t prefix = ((const uint8_t *)values)[-1];
    Py_ssize_t size = table->usable + table->entries, least = prefix - 2 - (WORD - 1);

    size = size < least ? least : size;
    size = size > prefix - 2 ? prefix - 2 : size;
    return prefix + size * WORD;
}
#endif

void
plus_dict_parts(PyObject *dict, Py_ssize_t *keys_bytes, Py_ssize_t *values_bytes)
{
    const PyDictObject *parts = (PyDictObject *)dict;
    const struct key_table *table = (const struct key_table *)parts->ma_keys;

    *keys_bytes = *values_bytes = 0;
    if (parts->ma_values == NULL) {
        *keys_bytes = table->log2_size == 0 ? 0 : table_bytes(table);
        return;
    }
#if PY_VERSION_HEX >= 0x030D0000
    const struct inline_values *values = (const struct inline_values *)parts->ma_values;
    *values_bytes = values->embedded ? 0 : values_bytes_of(values);
#else
    *values_bytes = values_bytes_of((PyObject *const *)parts->ma_values, table);
#endif
}

/* ---- instances ------------------------------------------------------------------------------------ */

static const struct key_table *
names_of(PyTypeObject *type)
{
    return (const struct key_table *)((PyHeapTypeObject *)type)->ht_cached_keys;
}

bool
plus_has_inline_values(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030D0000
    unsigned long flag = Py_TPFLAGS_INLINE_VALUES;
#else
    unsigned long flag = Py_TPFLAGS_MANAGED_DICT;
#endif
    return PyType_HasFeature(type, flag) && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
           names_of(type) != NULL;
}

#if PY_VERSION_HEX >= 0x030D0000
static const struct inline_values *
values_of(PyObject *op)
{
    return (const struct inline_values *)((char *)op + Py_TYPE(op)->tp_basicsize);
}

Py_ssize_t
plus_inline_bytes(PyObject *op)
{
    return values_bytes_of(values_of(op));
}

static PyObject *const *
first_value(PyObject *op, Py_ssize_t *count)
{
    const struct inline_values *values = values_of(op);

    *count = values->valid ? values->capacity : 0;
    return values->values;
}

static PyObject *
managed_dict(PyObject *op)
{
    return ((PyObject **)op)[-3];
}
#else
/* NULL if there is a dict instead, or nothing yet. */
static PyObject *const *
values_of(PyObject *op)
{
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t word = ((uintptr_t *)op)[-3];

    return (word & 1) != 0 ? (PyObject *const *)(word + 1) : NULL;
#else
    return ((PyObject ***)op)[-4];
#endif
}

Py_ssize_t
plus_inline_bytes(PyObject *op)
{
    PyObject *const *values = values_of(op);

    return values == NULL ? 0 : values_bytes_of(values, names_of(Py_TYPE(op)));
}

static PyObject *const *
first_value(PyObject *op, Py_ssize_t *count)
{
    PyObject *const *values = values_of(op);
    /* Up to 7 too many; but the class never has more names than any of its instances has room for. */
    *count = values == NULL ? 0 : ((const uint8_t *)values)[-1] - 2;
    return values;
}

static PyObject *
managed_dict(PyObject *op)
{
    uintptr_t word = ((uintptr_t *)op)[-3];

    return (word & 1) != 0 ? NULL : (PyObject *)word;
}
#endif

int
plus_inline_attribute(PyObject *op, Py_ssize_t index, PyObject **name, PyObject **value)
{
    const struct key_table *names = names_of(Py_TYPE(op));
    Py_ssize_t count;
    PyObject *const *values = first_value(op, &count);
    const struct name_entry *entries =
        (const struct name_entry *)(names->indices + ((size_t)1 << names->log2_index_bytes));

    if (index >= count || index >= names->entries) {
        return 0;
    }
    *name = entries[index].key;
    *value = values[index];
    return 1;
}

PyObject *
plus_instance_dict(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_ssize_t offset = type->tp_dictoffset;
    PyObject *dict = NULL;

    if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        dict = verified.values ? managed_dict(op) : NULL;
    }
    else if (offset > 0) {
        dict = *(PyObject **)((char *)op + offset);
    }
#if PY_VERSION_HEX < 0x030C0000
    else if (offset < 0) { /* behind the items */
        Py_ssize_t items = Py_SIZE(op) < 0 ? -Py_SIZE(op) : Py_SIZE(op);
        offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, items);
        dict = *(PyObject **)((char *)op + offset);
    }
#endif
    return dict != NULL && PyDict_Check(dict) ? dict : NULL;
}

PyObject *
plus_class_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(type); /* a built-in class has another in each interpreter */

    Py_XDECREF(dict);
    return dict;
#else
    return type->tp_dict;
#endif
}

/* ---- whether it is so ----------------------------------------------------------------------------- */

static bool
can_read(const void *address, size_t size)
{
    char copy[256];

    return size <= sizeof(copy) && plus_read_memory((uintptr_t)address, copy, size);
}

/* With `count` entries, whose keys are strings or numbers. */
static bool
keys_fit(long count, bool strings)
{
    PyObject *dict = PyDict_New();
    Py_ssize_t keys_bytes, values_bytes;
    bool fits = dict != NULL;

    for (long i = 0; fits && i < count; i++) {
        PyObject *key = strings ? PyUnicode_FromFormat("k%ld", i) : PyLong_FromLong(i);
        fits = key != NULL && PyDict_SetItem(dict, key, Py_None) == 0;
        Py_XDECREF(key);
    }
    if (fits && can_read(((PyDictObject *)dict)->ma_keys, sizeof(struct key_table))) {
        plus_dict_parts(dict, &keys_bytes, &values_bytes);
        Py_ssize_t itself = PyDict_Type.tp_basicsize + 2 * WORD;
        fits = plus_object_bytes(dict) == itself + keys_bytes && values_bytes == 0;
    }
    else {
        fits = false;
    }
    Py_XDECREF(dict);
    return fits;
}

/* Of an instance that has the attributes `first` and `second`, and no dict. */
static bool
attributes_fit(PyObject *op, PyObject *first, PyObject *second)
{
    PyObject *name, *value;
    Py_ssize_t count;
    PyObject *const *values;

    if (!plus_has_inline_values(Py_TYPE(op)) || managed_dict(op) != NULL ||
        !can_read(names_of(Py_TYPE(op)), sizeof(struct key_table))) {
        return false;
    }
#if PY_VERSION_HEX < 0x030D0000
    if (values_of(op) == NULL || !can_read(values_of(op) - 1, (size_t)WORD)) {
        return false;
    }
#endif
    values = first_value(op, &count);
    return count >= 2 && count <= ATTRIBUTES_MAX + WORD && can_read(values, 2 * (size_t)WORD) &&
           plus_inline_attribute(op, 0, &name, &value) && value == first &&
           PyUnicode_CheckExact(name) && PyUnicode_CompareWithASCIIString(name, "first") == 0 &&
           plus_inline_attribute(op, 1, &name, &value) && value == second;
}

static bool
values_fit(PyObject *op)
{
    PyObject *first = PyFloat_FromDouble(1.5), *second = PyFloat_FromDouble(2.5), *dict = NULL;
    bool fits =
        first != NULL && second != NULL && PyObject_SetAttrString(op, "first", first) == 0 &&
        PyObject_SetAttrString(op, "second", second) == 0 && attributes_fit(op, first, second);

    if (fits) {
        dict = PyObject_GetAttrString(op, "__dict__");
        fits = dict != NULL && managed_dict(op) == dict;
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(dict);
    return fits;
}

static bool
try_values(void)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "probe");
    PyObject *op = type == NULL ? NULL : PyObject_CallNoArgs(type);
    bool fits = op != NULL && values_fit(op);

    Py_XDECREF(op);
    Py_XDECREF(type);
    return fits;
}

const struct plus_layouts *
plus_layouts_verify(void)
{
    static bool tried;

    if (tried) {
        return &verified;
    }
    bool keys = keys_fit(0, true) && keys_fit(1, true) && keys_fit(1, false) && keys_fit(9, true) &&
                keys_fit(400, true) && keys_fit(400, false);
    bool values = keys && try_values();
    PyErr_Clear();
    verified = (struct plus_layouts){keys, values};
    tried = true;
    return &verified;
}
