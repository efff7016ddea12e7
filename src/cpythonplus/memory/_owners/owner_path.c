#include "owner_path.h"

#include "../../_base/rows.h"

#include "../../_heap/references.h"
#include "../../_interp/objects/layouts.h"
#include "../binding.h"

#define STEPS 40
#define LABEL 200 /* characters of a key: they limit the size of the answer */

PyObject *
plus_type_name(const PyTypeObject *type)
{
    PyObject *module = plus_dict_item(plus_class_dict((PyTypeObject *)type), "__module__");
    PyObject *name = PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_HEAPTYPE)
                         ? ((PyHeapTypeObject *)type)->ht_qualname
                         : NULL;

    if (name == NULL || !PyUnicode_CheckExact(name)) {
        return PyUnicode_FromString(type->tp_name);
    }
    return module != NULL && PyUnicode_CheckExact(module)
               ? PyUnicode_FromFormat("%U.%U", module, name)
               : Py_NewRef(name);
}

PyObject *
plus_plain_text(PyObject *text)
{
    PyObject *plain = text != NULL && PyUnicode_Check(text) ? PyUnicode_FromObject(text) : NULL;

    PyErr_Clear();
    return plain != NULL ? plain : Py_NewRef(Py_None);
}

static PyObject *
named(PyObject *label)
{
    if (PyUnicode_CheckExact(label)) {
        return PyUnicode_Substring(label, 0, LABEL);
    }
    if (PyLong_CheckExact(label) || label == Py_None) {
        return Py_NewRef(label);
    }
    PyObject *name = plus_type_name(Py_TYPE(label)), *pair = NULL;

    if (name != NULL) {
        pair = Py_BuildValue("(N)", name);
    }
    return pair;
}

PyObject *
plus_owner_step(const struct plus_heap_graph *graph, uint32_t from, uint32_t to)
{
    PyObject *target = graph->objects[to], *source = graph->objects[from];
    bool names = (PyType_Check(source) && plus_class_dict((PyTypeObject *)source) == target) ||
                 (PyModule_Check(source) && PyModule_GetDict(source) == target);
    bool subclasses = PyType_Check(source) && PyDict_CheckExact(target) && !names;
    PyObject *label = names        ? Py_BuildValue("(sO)", "dict", Py_None)
                      : subclasses ? Py_BuildValue("(ss)", "attribute", "__subclasses__()")
                                   : plus_reference_label(source, target);
    PyObject *step = NULL, *name = label == NULL ? NULL : named(PyTuple_GET_ITEM(label, 1));

    if (name != NULL) {
        PyObject *key = PyTuple_GET_ITEM(label, 1);
        const char *how = PyUnicode_AsUTF8(PyTuple_GET_ITEM(label, 0));
        bool interned = how != NULL && strcmp(how, "key") == 0 && PyUnicode_CheckExact(key) &&
                        PyUnicode_CHECK_INTERNED(key);

        step = Py_BuildValue("(sNN)", interned ? "interned" : how, name,
                             plus_type_name(Py_TYPE(target)));
    }
    Py_XDECREF(label);
    return step;
}

/* Returns the first step of a path: a module, a variable of a function, a class, or another root. */
static PyObject *
root_step(const struct plus_reach *owners, uint32_t node)
{
    PyObject *op = owners->graph->objects[node];

    if (owners->anchor[node] == PLUS_GARBAGE) {
        return Py_BuildValue("(ssN)", "root", "garbage", plus_type_name(Py_TYPE(op)));
    }
    if (PyModule_Check(op)) {
        PyObject *name = plus_dict_item(PyModule_GetDict(op), "__name__");
        return Py_BuildValue("(sNs)", "module", plus_plain_text(name), "module");
    }
    const struct plus_keeper *keeper = plus_record_table_find(&owners->graph->keepers, op);

    if (keeper != NULL) {
        return Py_BuildValue("(s(sk)N)", "keeper", keeper->by, keeper->number,
                             plus_type_name(Py_TYPE(op)));
    }
    return Py_BuildValue("(sON)", "root", Py_None, plus_type_name(Py_TYPE(op)));
}

static PyObject *
variable_step(const struct plus_heap_graph *graph, uint32_t frame, uint32_t to)
{
    PyCodeObject *code = graph->codes[frame - 1];
    PyObject *name = plus_heap_graph_variable(frame, graph->objects[to]);

    return Py_BuildValue("(s(NNNi)N)", "variable", plus_plain_text(name),
                         plus_plain_text(code->co_qualname), plus_plain_text(code->co_filename),
                         code->co_firstlineno, plus_type_name(Py_TYPE(graph->objects[to])));
}

/* Returns the step from the tuple of a function's cells to one of them, with the name of the variable; NULL without an
 * exception: it is another tuple. */
static PyObject *
closure_step(PyObject *function, PyObject *tuple, PyObject *cell)
{
    if (function == NULL || !PyFunction_Check(function) ||
        PyFunction_GET_CLOSURE(function) != tuple) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    int first = code->co_nlocalsplus - code->co_nfreevars;

    for (int i = 0; i < code->co_nfreevars && i < PyTuple_GET_SIZE(tuple); i++) {
        if (PyTuple_GET_ITEM(tuple, i) == cell) {
            PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, first + i);
            return Py_BuildValue("(sNs)", "free variable", plus_plain_text(name), "cell");
        }
    }
    return NULL;
}

PyObject *
plus_owner_path(const struct plus_reach *owners, uint32_t node)
{
    const struct plus_heap_graph *graph = owners->graph;
    uint32_t path[STEPS], length = 0;

    for (uint32_t at = node; at != PLUS_NO_NODE; at = owners->parent[at]) {
        if (length < STEPS) {
            path[length++] = at;
        }
        else { /* leave out the middle: the end at the root counts more */
            memmove(&path[STEPS / 2], &path[STEPS / 2 + 1],
                    (STEPS - STEPS / 2 - 1) * sizeof path[0]);
            path[STEPS - 1] = at;
        }
    }
    PyObject *steps = PyList_New(0);

    for (uint32_t i = length; i-- > 0 && steps != NULL;) {
        bool first = i == length - 1, frame = !first && graph->objects[path[i + 1]] == NULL;

        if (graph->objects[path[i]] == NULL) {
            continue;
        }
        PyObject *closure = i + 2 < length && graph->objects[path[i + 1]] != NULL
                                ? closure_step(graph->objects[path[i + 2]],
                                               graph->objects[path[i + 1]], graph->objects[path[i]])
                                : NULL;

        plus_append_row(&steps, closure != NULL ? closure
                                : frame && owners->parent[path[i]] == path[i + 1]
                                    ? variable_step(graph, path[i + 1], path[i])
                                : first ? root_step(owners, path[i])
                                : owners->parent[path[i]] != path[i + 1]
                                    ? Py_BuildValue("(sOs)", "...", Py_None, "")
                                    : plus_owner_step(graph, path[i + 1], path[i]));
    }
    return steps;
}
