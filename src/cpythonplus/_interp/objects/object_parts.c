#include "object_parts.h"

#include "../facts/facts.h"
#include "../facts/probes.h"

#include "layouts.h"
#include "sizes.h"

#define WORD ((Py_ssize_t)sizeof(void *))

/* True if `type` has the __sizeof__ of `base`.  A method written in Python is not called: it says nothing about
 * memory. */
static bool
is_measured_as(PyTypeObject *type, PyTypeObject *base)
{
    PyObject *method = plus_sizeof_method(type);

    return method == NULL || method == plus_sizeof_method(base) ||
           !Py_IS_TYPE(method, &PyMethodDescr_Type);
}

/* True if the class's __sizeof__ adds the bytes of an object that its tp_traverse visits: it would count twice. */
static bool
tells_of_another(PyTypeObject *type)
{
    PyObject *method = plus_sizeof_method(type);

    return PY_VERSION_HEX >= 0x030C0000 && method != NULL &&
           Py_IS_TYPE(method, &PyMethodDescr_Type) &&
           strcmp(((PyDescrObject *)method)->d_type->tp_name, "_io.BytesIO") == 0;
}

static bool probing;

static bool
sizes_are_known(void)
{
    return probing || plus_fact_refusal(PLUS_FACT_OBJECT_SIZES) == NULL;
}

static enum plus_measure
measure_of(PyTypeObject *type)
{
    if (type != &PyBool_Type && type != &PyCode_Type && !sizes_are_known() &&
        !is_measured_as(type, &PyBaseObject_Type)) {
        return PLUS_TOLD;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_LONG_SUBCLASS)) {
        return type == &PyBool_Type ? PLUS_FIXED : PLUS_INT; /* its basic size includes the digit */
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_UNICODE_SUBCLASS)) {
        return PLUS_STR;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_LIST_SUBCLASS)) {
        return is_measured_as(type, &PyList_Type) ? PLUS_LIST : PLUS_TOLD;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_DICT_SUBCLASS)) {
        bool known =
            plus_fact_refusal(PLUS_FACT_DICT_KEYS) == NULL && is_measured_as(type, &PyDict_Type);
        return known ? PLUS_DICT : PLUS_TOLD;
    }
    if (PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type)) {
        return PLUS_SET;
    }
    if (type == &PyCode_Type) { /* its __sizeof__ adds data that debuggers attach */
        return PLUS_ITEMS;
    }
    if (!is_measured_as(type, &PyBaseObject_Type) && !tells_of_another(type)) {
        return PLUS_TOLD;
    }
    return type->tp_itemsize > 0 ? PLUS_ITEMS : PLUS_FIXED;
}

static Py_ssize_t
front_bytes(PyTypeObject *type)
{
    Py_ssize_t words = PyType_IS_GC(type) ? PLUS_GC_HEADER_WORDS : 0;

    return (words + (plus_has_preheader(type) ? 2 : 0)) * WORD;
}

struct plus_measuring
plus_measuring_of(PyTypeObject *type)
{
    struct plus_measuring how = {.measure = measure_of(type), .item_bytes = type->tp_itemsize};

    how.fixed_bytes = type->tp_basicsize + front_bytes(type);
    how.inline_values =
        plus_fact_refusal(PLUS_FACT_INLINE_VALUES) == NULL && plus_has_inline_values(type);
    /* PyType_GenericAlloc leaves room for one more item; built-in types do not use it. */
    how.extra_items = type->tp_itemsize > 0 && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
    return how;
}

/* ---- one object ----------------------------------------------------------------------------------- */

static Py_ssize_t
digits_of(PyObject *op)
{
    const PyLongObject *number = PLUS_AT(PLUS_FACT_OBJECT_SIZES, (PyLongObject *)op);
#if PY_VERSION_HEX >= 0x030C0000
    Py_ssize_t digits = (Py_ssize_t)(number->long_value.lv_tag >> 3);
#else
    Py_ssize_t digits = Py_SIZE(number) < 0 ? -Py_SIZE(number) : Py_SIZE(number);
#endif
    return digits;
}

/* A small int has the size of the C type, which ends on a whole word. */
static Py_ssize_t
int_bytes(const struct plus_measuring *how, PyObject *op)
{
    Py_ssize_t digits = digits_of(op) + how->extra_items;

    return how->fixed_bytes + (digits < 2 ? 2 : digits) * how->item_bytes;
}

static Py_ssize_t
items_bytes(const struct plus_measuring *how, PyObject *op)
{
    Py_ssize_t items = Py_SIZE(op) < 0 ? -Py_SIZE(op) : Py_SIZE(op);

    items = (items + how->extra_items) * how->item_bytes;
    return how->fixed_bytes + (how->extra_items ? (items + WORD - 1) & ~(WORD - 1) : items);
}

/* The characters follow the header, except in an instance of a derived class. */
static void
measure_str(const struct plus_measuring *how, PyObject *op, struct plus_parts *parts)
{
    const PyASCIIObject *head = PLUS_AT(PLUS_FACT_OBJECT_SIZES, (PyASCIIObject *)op);
    const PyCompactUnicodeObject *compact = (PyCompactUnicodeObject *)op;
    Py_ssize_t characters = (head->length + 1) * (Py_ssize_t)head->state.kind;

    if (head->state.compact && head->state.ascii) {
        parts->object = (Py_ssize_t)sizeof(PyASCIIObject) + characters;
        return;
    }
    if (head->state.compact) {
        parts->object = (Py_ssize_t)sizeof(PyCompactUnicodeObject) + characters;
        parts->values = compact->utf8 == NULL ? 0 : compact->utf8_length + 1;
        return;
    }
    const void *data = ((PyUnicodeObject *)op)->data.any;
    parts->table = data == NULL ? 0 : characters;
    parts->values = compact->utf8 == NULL || compact->utf8 == data ? 0 : compact->utf8_length + 1;
}

static Py_ssize_t
set_table_bytes(const PySetObject *set)
{
    return set->table == set->smalltable ? 0 : (set->mask + 1) * (Py_ssize_t)sizeof(setentry);
}

/* list.sort() sets `allocated` to -1 meanwhile. */
static Py_ssize_t
list_table_bytes(const PyListObject *list)
{
    return list->allocated > 0 ? list->allocated * WORD : 0;
}

/* The bytes of a class's own copy of its docstring, which __sizeof__ leaves out. */
static Py_ssize_t
doc_bytes(PyObject *op)
{
    PyTypeObject *type = PyType_Check(op) ? (PyTypeObject *)op : NULL;
    bool has_copy =
        type != NULL && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_doc != NULL;

    return has_copy ? (Py_ssize_t)strlen(type->tp_doc) + 1 : 0;
}

struct plus_parts
plus_parts_of(const struct plus_measuring *how, PyObject *op)
{
    struct plus_parts parts = {.object = how->fixed_bytes};

    switch (how->measure) {
    case PLUS_FIXED:
        break;
    case PLUS_ITEMS:
        parts.object = items_bytes(how, op);
        break;
    case PLUS_INT:
        parts.object = int_bytes(how, op);
        break;
    case PLUS_STR:
        measure_str(how, op, &parts);
        break;
    case PLUS_LIST:
        parts.table = list_table_bytes(PLUS_AT(PLUS_FACT_OBJECT_SIZES, (PyListObject *)op));
        break;
    case PLUS_DICT:
        plus_dict_parts(op, &parts.table, &parts.values);
        break;
    case PLUS_SET:
        parts.table = set_table_bytes(PLUS_AT(PLUS_FACT_OBJECT_SIZES, (PySetObject *)op));
        break;
    case PLUS_TOLD:
        parts.object = plus_object_bytes(op);
        parts.values = doc_bytes(op);
        break;
    }
    if (how->inline_values) {
#if PY_VERSION_HEX >= 0x030D0000
        parts.object += plus_inline_bytes(op);
#else
        parts.values += plus_inline_bytes(op);
#endif
    }
    return parts;
}

/* ---- proof ---------------------------------------------------------------------------------------- */

/* The result of sys.getsizeof(); -1 with an exception. */
static Py_ssize_t
size_told(PyObject *op)
{
    PyObject *getsizeof = PySys_GetObject("getsizeof"); /* borrowed */
    PyObject *told = getsizeof == NULL ? NULL : PyObject_CallOneArg(getsizeof, op);
    Py_ssize_t size = told == NULL ? -1 : PyLong_AsSsize_t(told);

    Py_XDECREF(told);
    return size;
}

static bool
size_fits(PyObject *op)
{
    struct plus_measuring how = plus_measuring_of(Py_TYPE(op));
    struct plus_parts parts = plus_parts_of(&how, op);

    Py_ssize_t size = parts.object + parts.table + parts.values;

    /* A small int takes a whole word more than its __sizeof__. */
    return (size + WORD - 1) / WORD == (size_told(op) + WORD - 1) / WORD;
}

const char *
plus_probe_object_sizes(void)
{
    PyObject *samples = Py_BuildValue("(i, L, L, s, s, s, [i, i, i], [], N)", 1, INT64_C(1) << 40,
                                      -(INT64_C(1) << 61), "ascii", "gr\xc3\xbc\xc3\x9f",
                                      "\xf0\x9d\x95\xa1", 1, 2, 3, PyFrozenSet_New(NULL));
    PyObject *many = PyList_New(0), *set = NULL;
    bool fits = samples != NULL && many != NULL;

    probing = true;
    for (long i = 0; fits && i < 100; i++) {
        PyObject *number = PyLong_FromLong(i);
        fits = number != NULL && PyList_Append(many, number) == 0;
        Py_XDECREF(number);
    }
    set = fits ? PySet_New(many) : NULL;
    fits = set != NULL && size_fits(many) && size_fits(set);
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(samples); i++) {
        fits = size_fits(PyTuple_GET_ITEM(samples, i));
    }
    probing = false;
    Py_XDECREF(set);
    Py_XDECREF(many);
    Py_XDECREF(samples);
    return fits ? NULL : "objects do not note their sizes as expected";
}
