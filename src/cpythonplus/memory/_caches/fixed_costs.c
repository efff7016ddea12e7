/* An object that several code objects share (a name, a constant) counts for each of them with a part: its size divided
 * by its references.  A note of each counted object would take too much memory. */
#include "fixed_costs.h"

#include "../../_heap/heap_walk.h"
#include "../../_interp/objects/sizes.h"

#define IMMORTAL_REFERENCES 0x3FFFFFFF /* less than an immortal object has on any version */

static Py_ssize_t
share_of(PyObject *op)
{
    Py_ssize_t references = op == NULL ? 0 : Py_REFCNT(op);

    return references <= 0 || references >= IMMORTAL_REFERENCES
               ? 0
               : plus_object_bytes(op) / references;
}

static void
add(struct plus_fixed_cost *cost, Py_ssize_t size_bytes)
{
    cost->objects++;
    cost->size_bytes += size_bytes;
}

/* ---- code ---------------------------------------------------------------------------------------- */

#ifdef CO_HAS_DOCSTRING

static bool
has_docstring(PyCodeObject *code)
{
    return (code->co_flags & CO_HAS_DOCSTRING) != 0;
}

#else

/* A function without a docstring has None as its first constant; lambdas and comprehensions have names like
 * "<lambda>". */
static bool
has_docstring(PyCodeObject *code)
{
    return (code->co_flags & CO_OPTIMIZED) != 0 && PyUnicode_CheckExact(code->co_name) &&
           PyUnicode_GET_LENGTH(code->co_name) > 0 && PyUnicode_READ_CHAR(code->co_name, 0) != '<';
}

#endif

/* Returns the first constant of a function; borrowed, or NULL. */
static PyObject *
docstring_of(PyCodeObject *code)
{
    PyObject *first = has_docstring(code) && PyTuple_GET_SIZE(code->co_consts) > 0
                          ? PyTuple_GET_ITEM(code->co_consts, 0)
                          : NULL;

    return first != NULL && PyUnicode_CheckExact(first) ? first : NULL;
}

static Py_ssize_t
constants_bytes(PyCodeObject *code, PyObject *docstring)
{
    Py_ssize_t size = share_of(code->co_consts);

    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); i++) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, i);
        if (constant != docstring && !PyCode_Check(constant)) {
            size += share_of(constant);
        }
    }
    return size;
}

/* ---- classes, modules, functions ----------------------------------------------------------------- */

/* Finds an item by the identity of its key: a key that is not interned is not one of the searched names.  Borrowed, or
 * NULL. */
static PyObject *
item_of(PyObject *dict, PyObject *name)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    while (dict != NULL && PyDict_Check(dict) && PyDict_Next(dict, &position, &key, &value)) {
        if (key == name) {
            return value;
        }
    }
    return NULL;
}

struct names {
    PyObject *doc, *annotations, *annotations_cache;
};

static void
add_namespace(struct plus_fixed_costs *costs, const struct names *names, PyObject *dict)
{
    PyObject *docstring = item_of(dict, names->doc);
    PyObject *annotations = item_of(dict, names->annotations);

    if (annotations == NULL) {
        annotations = item_of(dict, names->annotations_cache);
    }
    if (docstring != NULL && PyUnicode_CheckExact(docstring)) {
        add(&costs->docstrings, plus_object_bytes(docstring));
    }
    if (annotations != NULL && PyDict_Check(annotations)) {
        add(&costs->annotations, plus_object_bytes(annotations));
    }
}

static void
add_function(struct plus_fixed_costs *costs, PyFunctionObject *function)
{
    PyObject *annotations = function->func_annotations;

    if (annotations != NULL && (PyDict_Check(annotations) || PyTuple_Check(annotations))) {
        /* A tuple is a constant, which all closures of the code share. */
        add(&costs->annotations, share_of(annotations));
    }
}

static void
add_string(struct plus_fixed_costs *costs, PyObject *string)
{
    if (!PyUnicode_CHECK_INTERNED(string)) {
        return;
    }
    Py_ssize_t size = plus_object_bytes(string);
    add(&costs->interned, size);
    if (Py_REFCNT(string) >= IMMORTAL_REFERENCES) {
        add(&costs->immortal, size);
    }
}

/* ---- the walk ------------------------------------------------------------------------------------ */

struct counting {
    struct plus_fixed_costs *costs;
    struct names names;
};

static int
look_at(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    struct counting *counting = arg;
    struct plus_fixed_costs *costs = counting->costs;

    if (PyUnicode_CheckExact(op)) {
        add_string(costs, op);
    }
    else if (PyCode_Check(op)) {
        PyCodeObject *code = (PyCodeObject *)op;
        PyObject *docstring = docstring_of(code);

        add(&costs->code, plus_object_bytes((PyObject *)code) + constants_bytes(code, docstring) +
                              share_of(code->co_names) + share_of(code->co_localsplusnames) +
                              share_of(code->co_localspluskinds) + share_of(code->co_linetable) +
                              share_of(code->co_exceptiontable));
        if (docstring != NULL) {
            add(&costs->docstrings, plus_object_bytes(docstring));
        }
    }
    else if (PyFunction_Check(op)) {
        add_function(costs, (PyFunctionObject *)op);
    }
    else if (PyModule_Check(op)) {
        add_namespace(costs, &counting->names, PyModule_GetDict(op));
    }
    else if (PyType_Check(op) && PyType_HasFeature((PyTypeObject *)op, Py_TPFLAGS_HEAPTYPE)) {
        add_namespace(costs, &counting->names, ((PyTypeObject *)op)->tp_dict);
    }
    return 0;
}

static int
make_names(struct names *names)
{
    names->doc = PyUnicode_InternFromString("__doc__");
    names->annotations = PyUnicode_InternFromString("__annotations__");
    names->annotations_cache = PyUnicode_InternFromString("__annotations_cache__");
    PyErr_Clear();
    return names->doc == NULL || names->annotations == NULL || names->annotations_cache == NULL;
}

int
plus_fixed_costs_count(struct plus_fixed_costs *costs)
{
    struct counting counting = {.costs = costs};
    struct plus_heap_visitor visitor = {.object = look_at, .arg = &counting};
    int status = make_names(&counting.names) ? -ENOMEM : 0;

    *costs = (struct plus_fixed_costs){0};
    if (status == 0) {
        status = plus_heap_walk(&visitor, NULL);
    }
    Py_XDECREF(counting.names.doc);
    Py_XDECREF(counting.names.annotations);
    Py_XDECREF(counting.names.annotations_cache);
    return status;
}
