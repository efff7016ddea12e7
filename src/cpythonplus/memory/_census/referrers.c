/* Two views of the heap are put together.  The walk reports every reference, but only the class of the referring object
 * is known (of a dict it is not known that it belongs to an instance).  So each object that has attributes is also
 * asked for them when the walk meets it.  References that the second view explains are taken off the first.
 *
 *     reference       owners[TYPE], the class of the referring object: + 1; a class is left to its namespace
 *     object          attributes in it: its class's row + 1, owners[TYPE] - 1
 *                     its dict, of a module or a class, too: the row + 1 for each value, owners[TYPE] of dict - 1
 *     frames          variables: a row each; the walk does not tell these references
 *
 * The two views come in any order, so a count may be negative meanwhile.  Rows of 0 are left out.  A dict with several
 * owners is counted once, for the owner that is met first.
 *
 * No Python object is made before the walk is over.  Then references to all owners and names are taken before the
 * first row is made, because making it may start the collector. */
#include "referrers.h"

#include "../../_base/memory/granules.h"
#include "../../_base/memory/record_table.h"
#include "../../_heap/heap_walk.h"
#include "../../_heap/references.h"
#include "../../_interp/frames/live_frames.h"
#include "../../_interp/objects/gc_objects.h"
#include "../../_interp/objects/layouts.h"
#include "../../_interp/objects/world.h"

#define LABELS_MAX 200 /* of one owner; later ones have no name */

enum kind { ATTRIBUTE, DICT, CLASS, MODULE, VARIABLE, TYPE, KINDS };

static const char *const kind_names[] = {"attribute", "dict",     "class",
                                         "module",    "variable", "type"};

struct label {
    PyObject *name; /* NULL: `field` is the name, or there is none */
    const char *field;
    Py_ssize_t references;
};

struct owner {
    PyObject *object;
    struct label *labels;
    size_t count;
};

struct search {
    PyTypeObject *target;
    struct plus_record_table owners[KINDS];
    struct plus_granules shared; /* dicts that were met with an owner before */
    PyObject *asked;             /* the object whose attributes are being visited */
    enum kind kind;
    Py_ssize_t found; /* attributes found in `asked` */
};

/* Doubles the array when it is full: at 1, 2, 4 ... */
static struct label *
add_label(struct owner *owner, PyObject *name, const char *field)
{
    if ((owner->count & (owner->count - 1)) == 0) {
        size_t capacity = owner->count == 0 ? 1 : 2 * owner->count;
        struct label *labels = realloc(owner->labels, capacity * sizeof *labels);
        if (labels == NULL) {
            return NULL;
        }
        owner->labels = labels;
    }
    struct label *label = &owner->labels[owner->count++];
    *label = (struct label){name, field, 0};
    return label;
}

static int
count(struct search *search, enum kind kind, PyObject *object, PyObject *name, const char *field,
      Py_ssize_t references)
{
    struct owner *owner = plus_record_table_get(&search->owners[kind], object);
    struct label *label = NULL;

    if (owner == NULL) {
        return -ENOMEM;
    }
    if (owner->count >= LABELS_MAX) {
        name = NULL;
        field = NULL;
    }
    for (size_t i = 0; i < owner->count && label == NULL; i++) {
        if (owner->labels[i].name == name && owner->labels[i].field == field) {
            label = &owner->labels[i];
        }
    }
    if (label == NULL && (label = add_label(owner, name, field)) == NULL) {
        return -ENOMEM;
    }
    label->references += references;
    return 0;
}

/* ---- objects with attributes ---------------------------------------------------------------------- */

static int
count_attribute(PyObject *name, const char *field, PyObject *value, void *arg)
{
    struct search *search = arg;

    if (Py_TYPE(value) != search->target) {
        return 0;
    }
    PyObject *type = (PyObject *)Py_TYPE(search->asked);
    int status = count(search, TYPE, type, NULL, NULL, -1);
    return status < 0 ? status : count(search, ATTRIBUTE, type, name, field, 1);
}

/* Takes an attribute off its class's count, for an instance whose attributes are in its dict, too: count_dict() counts
 * them there. */
static int
discount_attribute(PyObject *name, const char *field, PyObject *value, void *arg)
{
    struct search *search = arg;

    (void)name, (void)field;
    return Py_TYPE(value) != search->target
               ? 0
               : count(search, TYPE, (PyObject *)Py_TYPE(search->asked), NULL, NULL, -1);
}

static int
count_namespace(struct search *search, PyObject *dict, enum kind kind, PyObject *owner)
{
    Py_ssize_t position = 0, found = 0;
    PyObject *key, *value;
    int status = 0;

    while (status == 0 && PyDict_Next(dict, &position, &key, &value)) {
        if (Py_TYPE(value) == search->target) {
            found++;
            status = count(search, kind, owner, PyUnicode_CheckExact(key) ? key : NULL, NULL, 1);
        }
    }
    if (status == 0 && found > 0) {
        status = count(search, TYPE, (PyObject *)&PyDict_Type, NULL, NULL, -found);
    }
    return status;
}

/* Counts the values of a namespace.  A dict with several references is counted once. */
static int
count_dict(struct search *search, PyObject *dict, enum kind kind, PyObject *owner)
{
    if (dict == NULL || !PyDict_CheckExact(dict)) {
        return 0;
    }
    int is_new = Py_REFCNT(dict) == 1 ? 1 : plus_granules_add(&search->shared, dict);
    return is_new <= 0 ? is_new : count_namespace(search, dict, kind, owner);
}

static int
count_instance(struct search *search, PyObject *op)
{
    PyObject *dict = plus_instance_dict(op);

    search->asked = op;
#if PY_VERSION_HEX >= 0x030D0000
    bool twice = dict != NULL && plus_has_inline_values(Py_TYPE(op));
#else
    bool twice = false;
#endif
    int status = plus_attributes_visit(op, twice ? discount_attribute : count_attribute, search);
    return status < 0 ? status : count_dict(search, dict, DICT, (PyObject *)Py_TYPE(op));
}

static int
count_object(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct search *search = arg;

    (void)parent, (void)origin;
    if (PyType_Check(op)) {
        return count_dict(search, plus_class_dict((PyTypeObject *)op), CLASS, op);
    }
    if (PyModule_Check(op)) {
        PyObject *dict = PyModule_GetDict(op);
        return count_dict(search, dict, MODULE, dict);
    }
    PyTypeObject *type = Py_TYPE(op);
    bool plain =
        type->tp_traverse == NULL ||
        (type->tp_dictoffset == 0 && type->tp_members == NULL &&
         type->tp_base == &PyBaseObject_Type && !PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT));
    return plain ? 0 : count_instance(search, op);
}

/* ---- all references ------------------------------------------------------------------------------- */

/* Counts every reference but those from a class: its namespace counts them. */
static int
count_reference(PyObject *from, PyObject *to, void *arg)
{
    struct search *search = arg;

    if (Py_TYPE(to) != search->target || PyType_Check(from)) {
        return 0;
    }
    return count(search, TYPE, (PyObject *)Py_TYPE(from), NULL, NULL, 1);
}

static int
count_variable(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    struct search *search = arg;

    if (index < 0 || Py_TYPE(value) != search->target) {
        return 0;
    }
    PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, index);
    return count(search, VARIABLE, (PyObject *)code, name, NULL, 1);
}

/* ---- rows ----------------------------------------------------------------------------------------- */

static void
hold_all(struct search *search, bool release)
{
    struct owner *owner;

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t at = 0; (owner = plus_record_table_next(&search->owners[kind], &at)) != NULL;) {
            for (size_t i = 0; i < owner->count; i++) {
                release ? Py_XDECREF(owner->labels[i].name) : Py_XINCREF(owner->labels[i].name);
            }
            release ? Py_DECREF(owner->object) : Py_INCREF(owner->object);
        }
    }
}

static int
add_rows(PyObject *rows, int kind, const struct owner *owner)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < owner->count; i++) {
        const struct label *label = &owner->labels[i];
        PyObject *name =
            label->name != NULL ? Py_NewRef(label->name) : Py_BuildValue("z", label->field);
        PyObject *row =
            name == NULL || label->references <= 0
                ? Py_XNewRef(name)
                : Py_BuildValue("(sOOn)", kind_names[kind], owner->object, name, label->references);
        status = row == NULL ? -1 : label->references > 0 ? PyList_Append(rows, row) : 0;
        Py_XDECREF(name);
        Py_XDECREF(row);
    }
    return status;
}

static PyObject *
make_rows(const struct search *search)
{
    PyObject *rows = PyList_New(0);
    const struct owner *owner;

    for (int kind = 0; rows != NULL && kind < KINDS; kind++) {
        size_t at = 0;
        while (rows != NULL &&
               (owner = plus_record_table_next(&search->owners[kind], &at)) != NULL) {
            if (add_rows(rows, kind, owner) < 0) {
                Py_CLEAR(rows);
            }
        }
    }
    return rows;
}

static void
free_search(struct search *search)
{
    struct owner *owner;

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t at = 0; (owner = plus_record_table_next(&search->owners[kind], &at)) != NULL;) {
            free(owner->labels);
        }
        plus_record_table_clear(&search->owners[kind]);
    }
    plus_granules_clear(&search->shared);
}

/* Holds what it has found, before another thread may free it. */
static int
search_all(void *arg)
{
    const struct plus_heap_visitor visitor = {count_object, count_reference, arg};
    int status = plus_heap_walk(&visitor, NULL);

    if (status == 0) {
        status = plus_live_frames_visit(count_variable, arg);
    }
    if (status == 0) {
        hold_all(arg, false);
    }
    return status;
}

PyObject *
plus_referrers_rows(PyTypeObject *target)
{
    struct search search = {.target = target};
    PyObject *rows = NULL;

    for (int kind = 0; kind < KINDS; kind++) {
        search.owners[kind] = PLUS_RECORD_TABLE(struct owner);
    }
    int status = plus_gc_objects_begin();

    if (status == 0) {
        status = plus_world_stopped(search_all, &search);
        plus_gc_objects_end();
    }
    if (status == 0) {
        rows = make_rows(&search);
        hold_all(&search, true);
    }
    else {
        PyErr_NoMemory();
    }
    free_search(&search);
    return rows;
}
