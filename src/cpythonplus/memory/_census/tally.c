/* Counts one object at a time as the walk over the heap reports it, and makes no Python object meanwhile.
 *
 *     by class        the bytes of the object itself: plus_parts_of(); how to measure is found once for its class
 *     by role         a dict with the attributes of an instance, a module or a class is counted a second time, as owned
 *                     by that: the tables by owner move it from dict to its owner
 *     by place        functions and modules at their namespace, code at its file's name; names are found afterwards
 *     by size class   each block: the object, its table, its values
 *
 * A dict with one reference belongs to one owner and needs no note.  A dict with more references may be met with a
 * second owner, so `shared` notes it.  Each dict counts for the owner that is met first.
 *
 * Records are keyed by addresses.  Classes, namespaces and names stay alive while the GIL is held, and
 * plus_tally_hold() takes a reference to each before any Python object is made.  Releasing the references may run any
 * code, but the records stay in place until all are released. */
#include "tally.h"

#include "../../_interp/objects/layouts.h"

/* The role of a class's objects. */
enum role {
    PLAIN,
    HAS_DICT, /* may have a dict */
    FUNCTION, /* may have a dict, and belongs to a module */
    CODE,
    CLASS,
    MODULE,
};

/* ---- classes and places --------------------------------------------------------------------------- */

static unsigned
role_of(PyTypeObject *type)
{
    if (type == &PyFunction_Type) {
        return FUNCTION;
    }
    if (type == &PyCode_Type) {
        return CODE;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        return CLASS;
    }
    if (PyType_IsSubtype(type, &PyModule_Type)) {
        return MODULE;
    }
    bool may = type->tp_dictoffset != 0 || PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT);
    return may ? HAS_DICT : PLAIN;
}

static struct plus_class_tally *
add_class(struct plus_tally *tally, PyTypeObject *type)
{
    struct plus_class_tally *record = plus_record_table_add(&tally->classes, type);

    if (record != NULL) {
        record->how = plus_measuring_of(type);
        record->role = role_of(type);
    }
    return record;
}

static inline struct plus_class_tally *
class_tally(struct plus_tally *tally, PyTypeObject *type)
{
    struct plus_class_tally *record = plus_record_table_find(&tally->classes, type);

    return record != NULL ? record : add_class(tally, type);
}

int
plus_tally_init(struct plus_tally *tally)
{
    *tally = (struct plus_tally){.shared = PLUS_GRANULES_EMPTY};
    tally->classes = PLUS_RECORD_TABLE(struct plus_class_tally);
    tally->places = tally->files = PLUS_RECORD_TABLE(struct plus_place_tally);
    tally->dict = add_class(tally, &PyDict_Type);
    return tally->dict == NULL ? -ENOMEM : 0;
}

/* ---- one object ----------------------------------------------------------------------------------- */

static inline Py_ssize_t
bytes_of(const struct plus_parts *parts)
{
    return parts->object + parts->table + parts->values;
}

static inline void
add_to(struct plus_sum *sum, Py_ssize_t bytes)
{
    sum->objects++;
    sum->bytes += bytes;
}

static inline void
count_block(struct plus_tally *tally, Py_ssize_t bytes)
{
    size_t index = bytes <= 512
                       ? ((size_t)bytes + 15) / 16
                       : PLUS_SMALL_CLASSES + (size_t)(54 - __builtin_clzll((uint64_t)bytes - 1));

    add_to(&tally->sizes[index], bytes);
}

Py_ssize_t
plus_size_class_limit(unsigned index)
{
    return index < PLUS_SMALL_CLASSES ? 16 * (Py_ssize_t)index
                                      : (Py_ssize_t)1024 << (index - PLUS_SMALL_CLASSES);
}

/* Returns the bytes of a dict that is an object's namespace.  0: it is no dict, or it was counted for another owner
 * before, as with the Borg pattern. -ENOMEM. */
static Py_ssize_t
own_dict(struct plus_tally *tally, PyObject *dict)
{
    if (dict == NULL || !PyDict_CheckExact(dict)) {
        return 0;
    }
    /* A dict with one reference belongs to its owner alone. */
    int is_new = Py_REFCNT(dict) == 1 ? 1 : plus_granules_add(&tally->shared, dict);
    if (is_new <= 0) {
        return is_new;
    }
    struct plus_parts parts = plus_parts_of(&tally->dict->how, dict);
    add_to(&tally->dict->owned, bytes_of(&parts));
    return bytes_of(&parts);
}

static int
add_dict(struct plus_tally *tally, PyObject *dict, struct plus_sum *sum)
{
    Py_ssize_t bytes = own_dict(tally, dict);

    if (bytes > 0) {
        add_to(sum, bytes);
    }
    return bytes < 0 ? -ENOMEM : 0;
}

static int
add_function(struct plus_tally *tally, PyFunctionObject *function, Py_ssize_t bytes)
{
    PyObject *names = function->func_globals;
    struct plus_place_tally *place =
        names == NULL ? NULL : plus_record_table_get(&tally->places, names);

    if (place == NULL) {
        return names == NULL ? 0 : -ENOMEM;
    }
    add_to(&place->self, bytes);
    return add_dict(tally, function->func_dict, &place->dicts);
}

static int
add_code(struct plus_tally *tally, PyCodeObject *code, Py_ssize_t bytes)
{
    PyObject *file = code->co_filename;
    struct plus_place_tally *place =
        file == NULL ? NULL : plus_record_table_get(&tally->files, file);

    if (place != NULL) {
        add_to(&place->self, bytes);
    }
    return file != NULL && place == NULL ? -ENOMEM : 0;
}

static int
add_type(struct plus_tally *tally, PyTypeObject *type, Py_ssize_t bytes)
{
    struct plus_class_tally *record = class_tally(tally, type);
    Py_ssize_t dict_bytes = record == NULL ? -ENOMEM : own_dict(tally, plus_class_dict(type));

    if (dict_bytes < 0) {
        return -ENOMEM;
    }
    add_to(&record->itself, bytes);
    record->own_dict_bytes = dict_bytes;
    return 0;
}

static int
add_module(struct plus_tally *tally, PyObject *module, Py_ssize_t bytes)
{
    PyObject *names = PyModule_GetDict(module);
    struct plus_place_tally *place =
        names == NULL ? NULL : plus_record_table_get(&tally->places, names);
    Py_ssize_t dict_bytes = place == NULL ? 0 : own_dict(tally, names);

    if (names != NULL && (place == NULL || dict_bytes < 0)) {
        return -ENOMEM;
    }
    if (place != NULL) {
        add_to(&place->self, bytes);
        place->is_module = true;
        place->own_bytes += dict_bytes;
    }
    return 0;
}

static int
add_role(struct plus_tally *tally, struct plus_class_tally *record, PyObject *op, Py_ssize_t bytes)
{
    switch ((enum role)record->role) {
    case HAS_DICT:
        return add_dict(tally, plus_instance_dict(op), &record->dicts);
    case FUNCTION:
        return add_function(tally, (PyFunctionObject *)op, bytes);
    case CODE:
        return add_code(tally, (PyCodeObject *)op, bytes);
    case CLASS:
        return add_type(tally, (PyTypeObject *)op, bytes);
    case MODULE:
        return add_module(tally, op, bytes);
    case PLAIN:
        break;
    }
    return 0;
}

int
plus_tally_add(struct plus_tally *tally, PyObject *op, bool frozen)
{
    struct plus_class_tally *record = class_tally(tally, Py_TYPE(op));

    if (record == NULL) {
        return -ENOMEM;
    }
    struct plus_parts parts = plus_parts_of(&record->how, op);
    Py_ssize_t bytes = bytes_of(&parts);

    add_to(&record->self, bytes);
    count_block(tally, parts.object);
    if (parts.table > 0) {
        count_block(tally, parts.table);
    }
    if (parts.values > 0) {
        count_block(tally, parts.values);
    }
    tally->frozen += frozen;
    tally->immortal += plus_compat_is_immortal(op);
    return record->role == PLAIN ? 0 : add_role(tally, record, op, bytes);
}

/* ---- all of them ---------------------------------------------------------------------------------- */

size_t
plus_tally_bytes(const struct plus_tally *tally)
{
    return plus_record_table_bytes(&tally->classes) + plus_record_table_bytes(&tally->places) +
           plus_record_table_bytes(&tally->files) + plus_granules_bytes(&tally->shared);
}

/* Releasing a class may run any code.  The table is read slot by slot and is still whole. */
static void
hold_keys(const struct plus_tally *tally, bool release)
{
    const struct plus_record_table *const tables[] = {&tally->classes, &tally->places,
                                                      &tally->files};
    PyObject **key; /* a record's first field */

    for (int i = 0; i < 3; i++) {
        for (size_t at = 0; (key = plus_record_table_next(tables[i], &at)) != NULL;) {
            release ? Py_DECREF(*key) : Py_INCREF(*key);
        }
    }
}

void
plus_tally_hold(struct plus_tally *tally)
{
    hold_keys(tally, false);
}

void
plus_tally_free(struct plus_tally *tally, bool held)
{
    if (held) {
        hold_keys(tally, true);
    }
    plus_record_table_clear(&tally->classes);
    plus_record_table_clear(&tally->places);
    plus_record_table_clear(&tally->files);
    plus_granules_clear(&tally->shared);
}
