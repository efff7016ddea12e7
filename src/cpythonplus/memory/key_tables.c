/* Where the values of an instance's attributes lie ('*' is what its own memory ends with):
 *
 *     3.11     [values -> prefix|v0 v1 ...] [dict] [gc gc] object*        one of the two is NULL
 *     3.12     [values + 1 or dict]                [gc gc] object*
 *     3.13 on  [dict]                              [gc gc] object | capacity size embedded valid v0 v1 ...*
 *
 * A dict made for an instance takes the values over (3.11, 3.12) or points into the object (3.13 on) as long as its
 * names are the class's.  Classes that are not plain (from 3.13 on also those with slots in front) have a dict, split
 * or combined.  (Include/internal/pycore_dict.h, pycore_object.h; Objects/dictobject.c.) */
#define Py_BUILD_CORE 1
#include "key_tables.h"

#include <internal/pycore_dict.h>

#define GC_HEADER ((Py_ssize_t)(2 * sizeof(void *)))
/* Objects/dictobject.c, PyDict_LOG_MINSIZE */
#define LOG2_SMALLEST 3
#define POINTER ((Py_ssize_t)sizeof(void *))
#define DICT_BYTES ((Py_ssize_t)sizeof(PyDictObject) + GC_HEADER)

static Py_ssize_t
rounded_up(Py_ssize_t size)
{
    return (size + POINTER - 1) / POINTER * POINTER;
}

static PyDictKeysObject *
shared_keys(PyTypeObject *type)
{
    return (PyDictKeysObject *)((PyHeapTypeObject *)type)->ht_cached_keys;
}

bool
plus_type_shares_keys(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && shared_keys(type) != NULL;
}

void
plus_type_shared_names(PyTypeObject *type, Py_ssize_t *names, Py_ssize_t *room)
{
    const PyDictKeysObject *keys = shared_keys(type);

    *names = keys->dk_nentries;
    *room = keys->dk_usable;
}

/* ---- values -------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030D0000

#define INLINE_VALUES Py_TPFLAGS_INLINE_VALUES

static Py_ssize_t
values_bytes_for(Py_ssize_t slots)
{
    return rounded_up(slots) + (slots + 1) * POINTER;
}

static Py_ssize_t
values_bytes(const PyDictValues *values, PyTypeObject *type)
{
    return values_bytes_for(values->capacity);
}

#else

#define INLINE_VALUES Py_TPFLAGS_MANAGED_DICT

static Py_ssize_t
values_bytes_for(Py_ssize_t slots)
{
    return rounded_up(slots + 2) + slots * POINTER;
}

/* How many slots were made is not noted.  The length of what lies in front, a multiple of 8, leaves a choice of
 * eight; nearly all instances have as many as the class would give one now. */
static Py_ssize_t
values_bytes(const PyDictValues *values, PyTypeObject *type)
{
    Py_ssize_t prefix = ((const uint8_t *)values)[-1];
    Py_ssize_t slots = shared_keys(type)->dk_nentries + shared_keys(type)->dk_usable;

    if (rounded_up(slots + 2) != prefix) {
        slots = prefix - 2;
    }
    return prefix + slots * POINTER;
}

#endif

bool
plus_type_inlines_values(PyTypeObject *type)
{
    return PyType_HasFeature(type, INLINE_VALUES);
}

Py_ssize_t
plus_attributes_shared_bytes(PyTypeObject *type, Py_ssize_t count)
{
    Py_ssize_t values = values_bytes_for(count < PLUS_SHARED_NAMES ? count + 1 : count);

    return plus_type_inlines_values(type) ? values : DICT_BYTES + values;
}

/* ---- key tables ---------------------------------------------------------------------------------- */

static Py_ssize_t
usable_of(int log2_size)
{
    return (Py_ssize_t)(((size_t)1 << log2_size) * 2 / 3);
}

static Py_ssize_t
keys_bytes_for(int log2_size, bool general)
{
    int index_bytes = log2_size < 8 ? 0 : log2_size < 16 ? 1 : log2_size < 32 ? 2 : 3;
    size_t entry = general ? 3 * sizeof(void *) : 2 * sizeof(void *);

    return (Py_ssize_t)(sizeof(PyDictKeysObject) + ((size_t)1 << (log2_size + index_bytes)) +
                        (size_t)usable_of(log2_size) * entry);
}

static bool
is_general(const PyDictKeysObject *keys)
{
    return keys->dk_kind == DICT_KEYS_GENERAL;
}

/* Empty dicts have one that is the interpreter's, split ones have their class's. */
static bool
has_own_keys(const PyDictObject *dict)
{
    return dict->ma_values == NULL && dict->ma_keys->dk_refcnt == 1;
}

static Py_ssize_t
keys_bytes(const PyDictKeysObject *keys)
{
    return keys_bytes_for(keys->dk_log2_size, is_general(keys));
}

/* As dict(other) makes it. */
static int
log2_size_for(Py_ssize_t entries)
{
    int log2_size = LOG2_SMALLEST;

    while (((Py_ssize_t)1 << log2_size) < (entries * 3 + 1) / 2) {
        log2_size++;
    }
    return log2_size;
}

/* A name that came by update() or from a file may be another object with the same text. */
static bool
is_shared_name(PyObject *name, PyDictKeysObject *keys)
{
    const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);

    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        PyObject *shared = entries[i].me_key;
        if (shared == name || (shared != NULL && PyUnicode_CheckExact(shared) &&
                               PyUnicode_Compare(shared, name) == 0)) {
            return true;
        }
    }
    return false;
}

bool
plus_dict_has_shared_names(PyObject *dict, PyTypeObject *type)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    while (PyDict_Next(dict, &position, &key, &value)) {
        if (!PyUnicode_CheckExact(key) || !is_shared_name(key, shared_keys(type))) {
            return false;
        }
    }
    return true;
}

/* ---- instances ----------------------------------------------------------------------------------- */

static void
add_dict(struct plus_attributes *attributes, PyTypeObject *type, const PyDictValues *embedded)
{
    const PyDictObject *dict = (PyDictObject *)attributes->dict;

    attributes->count = dict->ma_used;
    attributes->size_bytes += DICT_BYTES;
    attributes->storage = dict->ma_values != NULL ? PLUS_STORAGE_SPLIT : PLUS_STORAGE_COMBINED;
    if (dict->ma_values != NULL && dict->ma_values != embedded) {
        attributes->size_bytes += values_bytes(dict->ma_values, type);
    }
    else if (has_own_keys(dict)) {
        attributes->size_bytes += keys_bytes(dict->ma_keys);
    }
}

#if PY_VERSION_HEX >= 0x030D0000

static void
read_managed(PyObject *op, struct plus_attributes *attributes)
{
    PyTypeObject *type = Py_TYPE(op);
    const PyDictValues *values = PyType_HasFeature(type, Py_TPFLAGS_INLINE_VALUES)
                                     ? (const PyDictValues *)((const char *)op + type->tp_basicsize)
                                     : NULL;

    attributes->dict = ((PyObject **)op)[-3];
    if (values != NULL) {
        attributes->size_bytes = values_bytes(values, type);
    }
    if (attributes->dict != NULL) {
        add_dict(attributes, type, values);
    }
    else if (values != NULL && values->valid) {
        attributes->storage = PLUS_STORAGE_INLINE;
        attributes->count = values->size;
    }
}

#else

static void
read_values(const PyDictValues *values, PyTypeObject *type, struct plus_attributes *attributes)
{
    attributes->storage = PLUS_STORAGE_INLINE;
    attributes->count = ((const uint8_t *)values)[-2];
    attributes->size_bytes = values_bytes(values, type);
}

static void
read_managed(PyObject *op, struct plus_attributes *attributes)
{
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t word = ((const uintptr_t *)op)[-3];
    const PyDictValues *values = word & 1 ? (const PyDictValues *)(word + 1) : NULL;
    PyObject *dict = word & 1 ? NULL : (PyObject *)word;
#else
    const PyDictValues *values = ((PyDictValues **)op)[-4];
    PyObject *dict = ((PyObject **)op)[-3];
#endif

    attributes->dict = dict;
    if (dict != NULL) {
        add_dict(attributes, Py_TYPE(op), NULL);
    }
    else if (values != NULL) {
        read_values(values, Py_TYPE(op), attributes);
    }
}

#endif

void
plus_attributes_of(PyObject *op, struct plus_attributes *attributes)
{
    PyTypeObject *type = Py_TYPE(op);

    *attributes = (struct plus_attributes){.storage = PLUS_STORAGE_NONE};
    if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
        read_managed(op, attributes);
    }
    else if (type->tp_dictoffset != 0) {
        PyObject **place = _PyObject_GetDictPtr(op); /* makes none: the dict is not a managed one */
        attributes->dict = place == NULL ? NULL : *place;
        if (attributes->dict != NULL && PyDict_Check(attributes->dict)) {
            add_dict(attributes, type, NULL);
        }
    }
}

/* ---- tables -------------------------------------------------------------------------------------- */

static bool
read_dict(const PyDictObject *dict, struct plus_table *table)
{
    const PyDictKeysObject *keys = dict->ma_keys;

    if (!has_own_keys(dict)) {
        return false;
    }
    table->entries = dict->ma_used;
    table->general = is_general(keys);
    table->capacity = usable_of(keys->dk_log2_size);
    table->size_bytes = DICT_BYTES + keys_bytes(keys);
    table->could_be_bytes = DICT_BYTES;
    if (dict->ma_used > 0) {
        table->could_be_bytes += keys_bytes_for(log2_size_for(dict->ma_used), table->general);
    }
    return true;
}

/* As set(other) makes it (Objects/setobject.c, 'set_table_resize'). */
static Py_ssize_t
set_slots_for(Py_ssize_t entries)
{
    Py_ssize_t slots = PySet_MINSIZE;

    while (entries * 5 >= (PySet_MINSIZE - 1) * 3 && slots <= entries * 2) {
        slots *= 2;
    }
    return slots > PySet_MINSIZE ? slots : 0; /* so few lie in the object */
}

static bool
read_set(const PySetObject *set, struct plus_table *table)
{
    Py_ssize_t bare = (Py_ssize_t)sizeof(PySetObject) + GC_HEADER;

    if (set->table == set->smalltable) {
        return false;
    }
    table->entries = set->used;
    table->general = false;
    table->capacity = (set->mask + 1) * 3 / 5;
    table->size_bytes = bare + (set->mask + 1) * (Py_ssize_t)sizeof(setentry);
    table->could_be_bytes = bare + set_slots_for(set->used) * (Py_ssize_t)sizeof(setentry);
    return true;
}

bool
plus_table_of(PyObject *op, struct plus_table *table)
{
    if (PyDict_Check(op)) {
        return read_dict((PyDictObject *)op, table);
    }
    return PyAnySet_Check(op) && read_set((PySetObject *)op, table);
}
