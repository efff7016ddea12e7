#include "referents.h"

#include "../facts/probes.h"
#include "layouts.h"
#include "numpy_arrays.h"

static int
visit_all(PyObject *const *parts, size_t count, visitproc visit, void *arg)
{
    for (size_t i = 0; i < count; i++) {
        Py_VISIT(parts[i]);
    }
    return 0;
}

static int
visit_code(PyCodeObject *code, visitproc visit, void *arg)
{
    PyObject *const parts[] = {
        code->co_consts,   code->co_names,           code->co_localsplusnames,
        code->co_filename, code->co_localspluskinds, code->co_name,
        code->co_qualname, code->co_linetable,       code->co_exceptiontable,
#if PY_VERSION_HEX < 0x030C0000
        code->_co_code,
#endif
    };

    int stop = visit_all(parts, sizeof(parts) / sizeof(parts[0]), visit, arg);
#if PY_VERSION_HEX >= 0x030C0000
    const _PyCoCached *cached = code->_co_cached;
    if (stop == 0 && cached != NULL) {
        PyObject *const copies[] = {cached->_co_code, cached->_co_varnames, cached->_co_cellvars,
                                    cached->_co_freevars};
        stop = visit_all(copies, sizeof(copies) / sizeof(copies[0]), visit, arg);
    }
#endif
    return stop;
}

static int
visit_dict(PyObject *dict, visitproc visit, void *arg)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;

    while (PyDict_Next(dict, &position, &key, &value)) {
        Py_VISIT(key);
        Py_VISIT(value);
    }
    return 0;
}

static int
visit_type(PyTypeObject *type, visitproc visit, void *arg)
{
    PyObject *const parts[] = {plus_class_dict(type), type->tp_mro, type->tp_bases,
                               (PyObject *)type->tp_base};
    int stop = visit_all(parts, sizeof(parts) / sizeof(parts[0]), visit, arg);

    if (stop == 0 && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        const PyHeapTypeObject *heap_type = (PyHeapTypeObject *)type;
        PyObject *const names[] = {heap_type->ht_name, heap_type->ht_qualname, heap_type->ht_slots};
        stop = visit_all(names, sizeof(names) / sizeof(names[0]), visit, arg);
    }
    return stop;
}

static traverseproc headless;

void
plus_referents_headless(traverseproc traverse)
{
    headless = traverse;
}

bool
plus_can_be_traversed(PyObject *op)
{
    traverseproc traverse = Py_TYPE(op)->tp_traverse;

    return traverse != NULL && (plus_gc_has_header(op) || traverse == headless);
}

int
plus_referents_visit(PyObject *op, visitproc visit, void *arg)
{
    PyTypeObject *type = Py_TYPE(op);
    int stop = 0;

    if (PyDict_Check(op)) {
        stop = visit_dict(op, visit, arg);
    }
    else if (type == &PyCode_Type) {
        stop = visit_code((PyCodeObject *)op, visit, arg);
    }
    else if (PyType_Check(op)) {
        stop = visit_type((PyTypeObject *)op, visit, arg);
    }
    if (stop == 0 && type != &PyDict_Type && plus_can_be_traversed(op)) {
        stop = type->tp_traverse(op, visit, arg);
    }
    if (stop == 0 && plus_is_numpy_array_type(type)) {
        stop = plus_numpy_array_visit(op, visit, arg);
    }
#if PY_VERSION_HEX >= 0x030D0000
    /* tp_traverse leaves out a dict whose values are in the instance, and such a dict is untracked if they are strings
     * and numbers. */
    if (stop == 0 && PyType_HasFeature(type, Py_TPFLAGS_INLINE_VALUES)) {
        PyObject *dict = plus_instance_dict(op);
        stop = dict == NULL ? 0 : visit(dict, arg);
    }
#endif
    return stop;
}

/* Two lists in a row: the first one's word leads to the second one's header, if no collection came in between.  Only
 * that is compared, for the word behind it is not 0 either. */
static bool
leads_to_next(void)
{
    PyObject *first = PyList_New(0), *second = PyList_New(0);
    bool leads =
        first != NULL && second != NULL && plus_gc_is_tracked(first) &&
        plus_gc_leads_to(((const uintptr_t *)PLUS_AT(PLUS_FACT_GC_HEADER, first))[-2], second);

    if (leads) {
        PyObject_GC_UnTrack(first);
        leads = !plus_gc_is_tracked(first);
        PyObject_GC_Track(first);
        leads &= plus_gc_is_tracked(first);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    return leads;
}

bool plus_gc_header_refused;

const char *
plus_probe_gc_header(void)
{
    plus_gc_header_refused = true;
    for (int attempt = 0; attempt < 3 && plus_gc_header_refused && PyErr_Occurred() == NULL;
         attempt++) {
        plus_gc_header_refused = !leads_to_next();
    }
    return !plus_gc_header_refused ? NULL : "the words in front of an object are not as expected";
}
