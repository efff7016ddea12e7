/* Include/internal/pycore_dict.h and pycore_object.h:
 *
 *      -4           -3              -2 -1     0            tp_basicsize
 * 3.11 values*      dict*           collector object
 * 3.12 weak refs    dict* or values* - 1    object
 * 3.13 weak refs    dict*           collector object       capacity, size, embedded, valid | values | order
 *
 * A free-threaded build has no collector's words: the other two are at -2 and -1.
 * Up to 3.12 the values are a block of their own: order | size | bytes of these | values.
 *
 * A dict's key table is the same in all versions: a header, one index of 1 to 8 bytes for each slot, then the entries
 * in the order of their insertion.  The table belongs to the dict (combined), or to the class, with the values
 * elsewhere (split).  An instance of a class that shares its names begins without a dict: its values have the indexes
 * of the names in its class's table.
 *
 * The readers read addresses and sizes: never more entries than the header has, and never more of a class's names than
 * there are.  The GIL is held, so that no table is resized.  There are two facts, since key tables can be as expected
 * even if instances are not: inline-values requires dict-keys.
 *
 * Up to 3.12 the size of a values block is not stored; values_bytes_of() estimates it from the class's free names.
 *
 * Rejected: reading an instance's __dict__, which makes a missing dict; __sizeof__ alone, which leaves out the separate
 * blocks of an instance. */
#include "layouts.h"

#include "../facts/facts.h"
#include "../facts/probes.h"

#include "../../_base/memory/own_memory.h"

#define WORD ((Py_ssize_t)sizeof(void *))
#define ROUND_UP(bytes) (((bytes) + WORD - 1) & ~(WORD - 1))
#define GENERAL_KEYS 0  /* keys of any kind, with their hashes */
#define LOG2_SMALLEST 3 /* Objects/dictobject.c, PyDict_LOG_MINSIZE */
#define DICT_BYTES ((Py_ssize_t)sizeof(PyDictObject) + PLUS_GC_HEADER_WORDS * WORD)

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

/* ---- dicts ---------------------------------------------------------------------------------------- */

static Py_ssize_t
usable_of(int log2_size)
{
    return (Py_ssize_t)(((size_t)2 << log2_size) / 3);
}

static Py_ssize_t
table_bytes_for(int log2_size, bool general)
{
    int index_bytes = log2_size < 8 ? 0 : log2_size < 16 ? 1 : log2_size < 32 ? 2 : 3;
    size_t entry = general ? sizeof(struct general_entry) : sizeof(struct name_entry);

    return (Py_ssize_t)(sizeof(struct key_table) + ((size_t)1 << (log2_size + index_bytes)) +
                        (size_t)usable_of(log2_size) * entry);
}

static Py_ssize_t
table_bytes(const struct key_table *table)
{
    return table_bytes_for(table->log2_size, table->kind == GENERAL_KEYS);
}

static const struct name_entry *
names_in(const struct key_table *table)
{
    return (const struct name_entry *)(table->indices + ((size_t)1 << table->log2_index_bytes));
}

#if PY_VERSION_HEX >= 0x030D0000
static Py_ssize_t
values_bytes_for(Py_ssize_t slots)
{
    return ROUND_UP(slots) + (slots + 1) * WORD;
}

static Py_ssize_t
values_bytes_of(const struct inline_values *values)
{
    return values_bytes_for(values->capacity);
}
#else
static Py_ssize_t
values_bytes_for(Py_ssize_t slots)
{
    return ROUND_UP(slots + 2) + slots * WORD;
}

/* The number of values that fit is not stored.  It is the number of free names of the class when the instance was made,
 * which falls by one with each of its first instances; the prefix, which has room for as many, gives it to within 8. */
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

static const struct key_table *
keys_of(const PyDictObject *dict)
{
    return PLUS_AT(PLUS_FACT_DICT_KEYS, (const struct key_table *)dict->ma_keys);
}

void
plus_dict_parts(PyObject *dict, Py_ssize_t *keys_bytes, Py_ssize_t *values_bytes)
{
    const PyDictObject *parts = (PyDictObject *)dict;
    const struct key_table *table = keys_of(parts);

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
    const PyHeapTypeObject *heap_type = (PyHeapTypeObject *)type;

    return heap_type->ht_cached_keys == NULL
               ? NULL
               : PLUS_AT(PLUS_FACT_DICT_KEYS, (const struct key_table *)heap_type->ht_cached_keys);
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
    return PLUS_AT(PLUS_FACT_INLINE_VALUES,
                   (const struct inline_values *)((char *)op + Py_TYPE(op)->tp_basicsize));
}

Py_ssize_t
plus_inline_bytes(PyObject *op)
{
    return values_bytes_of(values_of(op));
}

/* -1 if they are in a dict. */
static Py_ssize_t
inline_count(PyObject *op)
{
    return values_of(op)->valid ? values_of(op)->size : -1;
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
    return ((PyObject **)PLUS_AT(PLUS_FACT_INLINE_VALUES, op))[-1 - PLUS_GC_HEADER_WORDS];
}
#else
/* NULL if there is a dict instead, or no attribute yet. */
static PyObject *const *
values_of(PyObject *op)
{
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t word = ((uintptr_t *)PLUS_AT(PLUS_FACT_INLINE_VALUES, op))[-3];

    return (word & 1) != 0 ? (PyObject *const *)(word + 1) : NULL;
#else
    return ((PyObject ***)PLUS_AT(PLUS_FACT_INLINE_VALUES, op))[-4];
#endif
}

Py_ssize_t
plus_inline_bytes(PyObject *op)
{
    PyObject *const *values = values_of(op);

    return values == NULL ? 0 : values_bytes_of(values, names_of(Py_TYPE(op)));
}

/* -1 if there are no inline values. */
static Py_ssize_t
inline_count(PyObject *op)
{
    PyObject *const *values = values_of(op);

    return values == NULL ? -1 : ((const uint8_t *)values)[-2];
}

static PyObject *const *
first_value(PyObject *op, Py_ssize_t *count)
{
    PyObject *const *values = values_of(op);
    /* Up to 7 too many, but the class never has more names than fit into any of its instances. */
    *count = values == NULL ? 0 : ((const uint8_t *)values)[-1] - 2;
    return values;
}

static PyObject *
managed_dict(PyObject *op)
{
    uintptr_t word = ((uintptr_t *)PLUS_AT(PLUS_FACT_INLINE_VALUES, op))[-3];

    return (word & 1) != 0 ? NULL : (PyObject *)word;
}
#endif

int
plus_inline_attribute(PyObject *op, Py_ssize_t index, PyObject **name, PyObject **value)
{
    const struct key_table *names = names_of(Py_TYPE(op));
    Py_ssize_t count;
    PyObject *const *values = first_value(op, &count);
    const struct name_entry *entries = names_in(names);

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
        dict = plus_fact_refusal(PLUS_FACT_INLINE_VALUES) == NULL ? managed_dict(op) : NULL;
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
    /* A built-in class has a different dict in each interpreter. */
    PyObject *dict = PyType_GetDict(type);

    Py_XDECREF(dict);
    return dict;
#else
    return type->tp_dict;
#endif
}

PyObject *
plus_dict_item(PyObject *dict, const char *name)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;

    while (dict != NULL && PyDict_Next(dict, &position, &key, &value)) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, name) == 0) {
            return value;
        }
    }
    return NULL;
}

PyObject *
plus_class_attribute(PyTypeObject *type, const char *name)
{
    PyObject *value = NULL;

    for (Py_ssize_t i = 0;
         value == NULL && type->tp_mro != NULL && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        value = plus_dict_item(plus_class_dict((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i)),
                               name);
    }
    return value;
}

/* Only heap classes can get attributes from a program. */
static bool
has_plain_names(PyTypeObject *type)
{
    PyObject *dict = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? plus_class_dict(type) : NULL;

    return dict == NULL || (plus_fact_refusal(PLUS_FACT_DICT_KEYS) == NULL &&
                            keys_of((PyDictObject *)dict)->kind != GENERAL_KEYS);
}

bool
plus_class_has_plain_names(PyTypeObject *type)
{
    bool plain = type->tp_mro != NULL;

    for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        plain = has_plain_names((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i));
    }
    return plain;
}

/* ---- memory use of dicts and sets ----------------------------------------------------------------- */

bool
plus_type_shares_keys(PyTypeObject *type)
{
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && names_of(type) != NULL;
}

void
plus_type_shared_names(PyTypeObject *type, Py_ssize_t *names, Py_ssize_t *room)
{
    *names = names_of(type)->entries;
    *room = names_of(type)->usable;
}

Py_ssize_t
plus_attributes_shared_bytes(PyTypeObject *type, Py_ssize_t count)
{
    Py_ssize_t values = values_bytes_for(count < PLUS_SHARED_NAMES ? count + 1 : count);

    return plus_has_inline_values(type) ? values : DICT_BYTES + values;
}

void
plus_attributes_of(PyObject *op, struct plus_attributes *attributes)
{
    PyDictObject *dict = (PyDictObject *)plus_instance_dict(op);
    bool inlines = plus_has_inline_values(Py_TYPE(op));
    Py_ssize_t keys_bytes, values_bytes;

    *attributes = (struct plus_attributes){.dict = (PyObject *)dict};
    attributes->size_bytes = inlines ? plus_inline_bytes(op) : 0;
    if (dict != NULL) {
        plus_dict_parts((PyObject *)dict, &keys_bytes, &values_bytes);
        attributes->storage = dict->ma_values != NULL ? PLUS_STORAGE_SPLIT : PLUS_STORAGE_COMBINED;
        attributes->count = dict->ma_used;
        attributes->size_bytes += DICT_BYTES + keys_bytes + values_bytes;
    }
    else if (inlines && inline_count(op) >= 0) {
        attributes->storage = PLUS_STORAGE_INLINE;
        attributes->count = inline_count(op);
    }
}

/* A name from update() or a file may be another object with the same text. */
static bool
is_shared_name(PyObject *name, const struct key_table *names)
{
    const struct name_entry *entries = names_in(names);

    for (Py_ssize_t i = 0; i < names->entries; i++) {
        PyObject *shared = entries[i].key;
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
        if (!PyUnicode_CheckExact(key) || !is_shared_name(key, names_of(type))) {
            return false;
        }
    }
    return true;
}

/* The size that dict(other) would choose. */
static int
log2_size_for(Py_ssize_t entries)
{
    int log2_size = LOG2_SMALLEST;

    while (((Py_ssize_t)1 << log2_size) < (entries * 3 + 1) / 2) {
        log2_size++;
    }
    return log2_size;
}

/* The size that set(other) would choose (Objects/setobject.c, 'set_table_resize'). */
static Py_ssize_t
set_slots_for(Py_ssize_t entries)
{
    Py_ssize_t slots = PySet_MINSIZE;

    while (entries * 5 >= (PySet_MINSIZE - 1) * 3 && slots <= entries * 2) {
        slots *= 2;
    }
    return slots > PySet_MINSIZE ? slots : 0; /* up to PySet_MINSIZE slots are in the object */
}

static bool
read_set(const PySetObject *set, struct plus_table *table)
{
    Py_ssize_t bare = (Py_ssize_t)sizeof(PySetObject) + PLUS_GC_HEADER_WORDS * WORD;

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
        const PyDictObject *dict = (PyDictObject *)op;
        const struct key_table *keys = keys_of(dict);

        /* Empty dicts share the interpreter's table, split ones have their class's. */
        if (dict->ma_values != NULL || keys->owners != 1) {
            return false;
        }
        table->entries = dict->ma_used;
        table->general = keys->kind == GENERAL_KEYS;
        table->capacity = usable_of(keys->log2_size);
        table->size_bytes = DICT_BYTES + table_bytes(keys);
        table->could_be_bytes = DICT_BYTES;
        if (dict->ma_used > 0) {
            table->could_be_bytes += table_bytes_for(log2_size_for(dict->ma_used), table->general);
        }
        return true;
    }
    return PyAnySet_Check(op) && read_set((PySetObject *)op, table);
}

/* ---- proof ---------------------------------------------------------------------------------------- */

static bool
can_read(const void *address, size_t size)
{
    char copy[256];

    return size <= sizeof(copy) && plus_read_memory((uintptr_t)address, copy, size);
}

/* Compare a dict of `count` entries, whose keys are strings or numbers. */
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
    if (fits && can_read(keys_of((PyDictObject *)dict), sizeof(struct key_table))) {
        PyObject *told = PyObject_CallMethod(dict, "__sizeof__", NULL);

        plus_dict_parts(dict, &keys_bytes, &values_bytes);
        fits = told != NULL && values_bytes == 0 &&
               PyLong_AsSsize_t(told) == PyDict_Type.tp_basicsize + keys_bytes;
        Py_XDECREF(told);
    }
    else {
        fits = false;
    }
    Py_XDECREF(dict);
    return fits;
}

/* Compare an instance that has the attributes `first` and `second`, and no dict. */
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
    return count >= 2 && count <= PLUS_SHARED_NAMES + WORD && can_read(values, 2 * (size_t)WORD) &&
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

static const char unexpected[] = "instances and dicts are not laid out as expected";

const char *
plus_probe_dict_keys(void)
{
    bool keys = keys_fit(0, true) && keys_fit(1, true) && keys_fit(1, false) && keys_fit(9, true) &&
                keys_fit(400, true) && keys_fit(400, false);

    return keys ? NULL : plus_memory_is_readable() ? unexpected : PLUS_MEMORY_UNREADABLE;
}

const char *
plus_probe_inline_values(void)
{
    const char *refusal = plus_fact_refusal(PLUS_FACT_DICT_KEYS);

    if (refusal == NULL && !try_values()) {
        refusal = unexpected;
    }
    return refusal;
}
