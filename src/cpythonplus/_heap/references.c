#include "references.h"

#include <string.h>

#include "../_interp/objects/layouts.h"

typedef int (*visitor)(PyObject *name, const char *field, PyObject *value, void *arg);

static int
visit_members(PyObject *op, PyTypeObject *type, visitor visit, void *arg)
{
    int stop = 0;

    for (const PyMemberDef *member = type->tp_members;
         stop == 0 && member != NULL && member->name != NULL; member++) {
        if ((member->type == Py_T_OBJECT_EX || member->type == _Py_T_OBJECT) &&
            member->offset > 0) {
            PyObject *value = *(PyObject **)((char *)op + member->offset);
            stop = value == NULL ? 0 : visit(NULL, member->name, value, arg);
        }
    }
    return stop;
}

int
plus_attributes_visit(PyObject *op, visitor visit, void *arg)
{
    PyObject *name, *value;
    int stop = 0;

    if (plus_fact_refusal(PLUS_FACT_INLINE_VALUES) == NULL && plus_has_inline_values(Py_TYPE(op))) {
        for (Py_ssize_t i = 0; stop == 0 && plus_inline_attribute(op, i, &name, &value); i++) {
            stop = value == NULL || name == NULL ? 0 : visit(name, NULL, value, arg);
        }
    }
    for (PyTypeObject *type = Py_TYPE(op); stop == 0 && type != NULL; type = type->tp_base) {
        stop = visit_members(op, type, visit, arg);
    }
    return stop;
}

/* ---- one reference -------------------------------------------------------------------------------- */

struct wanted {
    PyObject *target, *name;
    const char *field;
    bool found;
};

static int
take_name(PyObject *name, const char *field, PyObject *value, void *arg)
{
    bool found = field != NULL && strcmp(field, "name") == 0;

    if (found) {
        ((struct wanted *)arg)->name = value;
    }
    return found;
}

static int
compare_attribute(PyObject *name, const char *field, PyObject *value, void *arg)
{
    struct wanted *wanted = arg;

    if (value != wanted->target) {
        return 0;
    }
    wanted->name = name;
    wanted->field = field;
    return 1;
}

/* The name is held: on 3.11 making a tuple may start the collector, whose finalisers may drop the name's owner. */
static PyObject *
label_with(const char *kind, PyObject *name)
{
    return Py_BuildValue("(sN)", kind, Py_NewRef(name));
}

/* A mapping of contextvars visits each value before its variable. */
static int
compare_value(PyObject *op, void *arg)
{
    struct wanted *wanted = arg;

    if (wanted->found) {
        wanted->found = false;
        wanted->name = op;
        return 1;
    }
    wanted->found = op == wanted->target;
    return 0;
}

static PyObject *
context_label(PyObject *from, PyObject *to)
{
    struct wanted variable = {.target = to}, name = {.target = NULL};

    (void)Py_TYPE(from)->tp_traverse(from, compare_value, &variable);
    if (variable.name == NULL || !PyContextVar_CheckExact(variable.name)) {
        return label_with("", Py_None);
    }
    (void)plus_attributes_visit(variable.name, take_name, &name);
    return name.name == NULL ? label_with("", Py_None)
                             : label_with("variable of context", name.name);
}

static PyObject *
attribute_label(PyObject *from, PyObject *to)
{
    struct wanted wanted = {.target = to};

    if (plus_instance_dict(from) == to) {
        return label_with("dict", Py_None);
    }
    if (!plus_attributes_visit(from, compare_attribute, &wanted)) {
        return label_with("", Py_None);
    }
    if (wanted.name != NULL) {
        return label_with("attribute", wanted.name);
    }
    return Py_BuildValue("(ss)", "attribute", wanted.field);
}

static PyObject *
dict_label(PyObject *dict, PyObject *to)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    while (PyDict_Next(dict, &position, &key, &value)) {
        if (value == to) {
            return label_with("key", key);
        }
    }
    return NULL;
}

static PyObject *
items_label(PyObject *const *items, Py_ssize_t count, PyObject *to)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == to) {
            return Py_BuildValue("(sn)", "index", i);
        }
    }
    return NULL;
}

static PyObject *
label_of(PyObject *from, PyObject *to)
{
    PyObject *label = NULL;

    if (PyDict_Check(from)) {
        label = dict_label(from, to);
    }
    else if (PyList_Check(from)) {
        label = items_label(((PyListObject *)from)->ob_item, PyList_GET_SIZE(from), to);
    }
    else if (PyTuple_Check(from)) {
        label = items_label(((PyTupleObject *)from)->ob_item, PyTuple_GET_SIZE(from), to);
    }
    else if (strncmp(Py_TYPE(from)->tp_name, "hamt_", 5) == 0 &&
             PyType_HasFeature(Py_TYPE(from), Py_TPFLAGS_IMMUTABLETYPE)) {
        label = context_label(from, to);
    }
    return label != NULL || PyErr_Occurred() ? label : attribute_label(from, to);
}

PyObject *
plus_reference_label(PyObject *from, PyObject *to)
{
    PyObject *label;

    PLUS_BEGIN_LOCKED(from);
    label = label_of(from, to);
    PLUS_END_LOCKED();
    return label;
}
