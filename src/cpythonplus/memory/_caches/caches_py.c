/* The binding of caches. */
#include "../binding.h"

#include "../../_base/memory/granules.h"
#include "../../_base/methods.h"
#include "../../_base/raise.h"
#include "../../_heap/heap_walk.h"
#include "../../_interp/frames/live_frames.h"
#include "../../_interp/objects/gc_objects.h"
#include "../_garbage/held.h"
#include "fixed_costs.h"

PLUS_RETURNS(memory_free_lists_text, plus_refuses_free_threaded() ? NULL : plus_free_lists_text())

static PyObject *
memory_exclusively_held(PyObject *module, PyObject *args)
{
    PyObject *roots, *spared;
    Py_ssize_t objects, size_bytes;

    if (plus_refuses_free_threaded()) {
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!:memory_exclusively_held", &PyTuple_Type, &roots,
                          &PyTuple_Type, &spared)) {
        return NULL;
    }
    if (plus_exclusively_held(((PyTupleObject *)roots)->ob_item, PyTuple_GET_SIZE(roots),
                              ((PyTupleObject *)spared)->ob_item, PyTuple_GET_SIZE(spared),
                              &objects, &size_bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("(nn)", objects, size_bytes);
}

struct selection {
    PyObject *types; /* a tuple, or None for all */
    PyObject *found;
    struct plus_granules held; /* tuples with one reference whose referrer was met */
};

/* tuple(iterable) and other C code fill a tuple that the collector already knows.  The iterator may release the GIL
 * meanwhile, and the C code raises SystemError if there is a second reference then.  A walk does not see the reference
 * that such C code has. */
static bool
may_be_unfinished(PyObject *op)
{
    return PyTuple_CheckExact(op) && Py_REFCNT(op) == 1;
}

static int
note_reference(PyObject *from, PyObject *to, void *arg)
{
    (void)from;
    return may_be_unfinished(to) && plus_granules_add(arg, to) < 0 ? -ENOMEM : 0;
}

static int
note_variable(PyCodeObject *code, int index, PyObject *value, void *arg)
{
    (void)index;
    return note_reference((PyObject *)code, value, arg);
}

static int
note_held_tuples(struct plus_granules *held)
{
    const struct plus_heap_visitor visitor = {NULL, note_reference, held};
    int status = plus_heap_walk(&visitor, NULL);

    return status < 0 ? status : plus_live_frames_visit(note_variable, held);
}

static int
select_object(PyObject *op, bool frozen, void *arg)
{
    struct selection *selection = arg;

    /* The reference that `found` takes and releases would free a dying object again. */
    if (Py_REFCNT(op) == 0 || op == selection->found) {
        return 0;
    }
    if (selection->types == Py_None) {
        bool skip = may_be_unfinished(op) && !plus_granules_has(&selection->held, op);
        return skip ? 0 : PyList_Append(selection->found, op);
    }
    if (selection->types == PyExc_BaseException) {
        return PyExceptionInstance_Check(op) ? PyList_Append(selection->found, op) : 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(selection->types); i++) {
        if ((PyObject *)Py_TYPE(op) == PyTuple_GET_ITEM(selection->types, i)) {
            return PyList_Append(selection->found, op);
        }
    }
    return 0;
}

static int
select_met(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    (void)parent;
    bool is_known = origin == PLUS_HEAP_LISTED || origin == PLUS_HEAP_FROZEN;
    return is_known ? select_object(op, origin == PLUS_HEAP_FROZEN, arg) : 0;
}

/* If the collector's objects must be listed, the list has no frozen ones; a walk meets those that others refer to. */
static int
select_all(struct selection *selection)
{
    const struct plus_heap_visitor visitor = {select_met, NULL, selection};

    if (plus_gc_objects_need_listing()) {
        return plus_heap_walk(&visitor, NULL);
    }
    return plus_gc_objects_visit(select_object, selection);
}

static PyObject *
memory_gc_objects_of(PyObject *module, PyObject *types)
{
    struct selection selection = {.types = types};

    if (types != Py_None && types != PyExc_BaseException && !PyTuple_CheckExact(types)) {
        PyErr_SetString(PyExc_TypeError,
                        "memory_gc_objects_of takes a tuple of types, BaseException or None");
        return NULL;
    }
    if (plus_refuses_free_threaded() || plus_heap_walk_raises()) {
        return NULL;
    }
    selection.found = PyList_New(0);
    if (selection.found == NULL) {
        return NULL;
    }
    if (plus_gc_objects_begin() < 0) {
        Py_DECREF(selection.found);
        return PyErr_NoMemory();
    }
    if (types == Py_None && note_held_tuples(&selection.held) < 0) {
        PyErr_NoMemory();
        Py_CLEAR(selection.found);
    }
    else if (select_all(&selection) != 0) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        Py_CLEAR(selection.found);
    }
    plus_gc_objects_end();
    plus_granules_clear(&selection.held);
    return selection.found;
}

static PyObject *
memory_instance_dict(PyObject *module, PyObject *op)
{
    PyObject **place =
        PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_MANAGED_DICT) ? NULL : _PyObject_GetDictPtr(op);

    return Py_NewRef(place == NULL || *place == NULL ? Py_None : *place);
}

static PyObject *
memory_fixed_costs(PyObject *module, PyObject *unused)
{
    struct plus_fixed_costs costs;

    if (plus_refuses_free_threaded() || plus_heap_walk_raises()) {
        return NULL;
    }
    if (plus_fixed_costs_count(&costs) < 0) {
        return PyErr_NoMemory();
    }
    return Py_BuildValue("((nn)(nn)(nn)(nn)(nn))", costs.code.objects, costs.code.size_bytes,
                         costs.docstrings.objects, costs.docstrings.size_bytes,
                         costs.annotations.objects, costs.annotations.size_bytes,
                         costs.interned.objects, costs.interned.size_bytes, costs.immortal.objects,
                         costs.immortal.size_bytes);
}

PyMethodDef plus_memory_caches_methods[] = {
    PLUS_METHOD("memory_free_lists_text", memory_free_lists_text, METH_NOARGS, "$module, /",
                "Return what sys._debugmallocstats() writes, None if there is no such function."),
    PLUS_METHOD("memory_exclusively_held", memory_exclusively_held, METH_VARARGS,
                "$module, roots, spared, /",
                "Return how many objects, and bytes, only the roots hold, themselves included.\n\n"
                "spared: objects that do not count, nor what they hold."),
    PLUS_METHOD(
        "memory_gc_objects_of", memory_gc_objects_of, METH_O, "$module, types, /",
        "Return a list of the objects of just these types that the collector knows.\n\n"
        "None: of all types, but for tuples that C code may be filling; BaseException: of it\n"
        "and all that derive from it.  Frozen ones, too.\n"
        "UnsupportedPlatform where the heap cannot be walked."),
    PLUS_METHOD("memory_instance_dict", memory_instance_dict, METH_O, "$module, op, /",
                "Return the dict of an instance of a built-in type, None if it has none yet."),
    PLUS_METHOD("memory_fixed_costs", memory_fixed_costs, METH_NOARGS, "$module, /",
                "Return (objects, bytes) of code, docstrings, annotations, interned strings, and\n"
                "those of them that are immortal."),
    {NULL, NULL, 0, NULL},
};
