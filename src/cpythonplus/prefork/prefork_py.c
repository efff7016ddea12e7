/* The functions of prefork in the extension module; preparing.py wraps them for the public. */
#include "_fork/heap.h"
#include "binding.h"

#include "../_base/methods.h"
#include "../_base/raise.h"
#include "../_interp/facts/facts.h"
#include "../_interp/objects/gc_objects.h"
#include "../_interp/objects/immortal.h"

/* NULL, or the reason why no object can be made immortal: the walk reads more than the reference count. */
static const char *
why_not(void)
{
    const char *refusal = plus_immortal_refusal();

    return refusal != NULL ? refusal : plus_fact_refusal(PLUS_FACT_FRAMES);
}

static PyObject *
prefork_refusal(PyObject *module, PyObject *ignored)
{
    const char *refusal = why_not();

    if (refusal == NULL) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(refusal);
}

/* Not METH_VARARGS: the tuple of arguments would become immortal, with all that it holds. */
static PyObject *
prefork_immortalize(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct plus_heap_report report;
    const char *refusal = why_not();

    if (count != 4 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "prefork_immortalize takes three lists and a number");
        return NULL;
    }
    PyObject *types = args[0], *mortal = args[1], *spared = args[2];
    Py_ssize_t limit = args[3] == Py_None ? PY_SSIZE_T_MAX : PyLong_AsSsize_t(args[3]);
    if (limit == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (refusal != NULL) {
        PyErr_SetString(PyExc_RuntimeError, refusal);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
        if (!PyType_Check(PyList_GET_ITEM(types, i))) {
            PyErr_SetString(PyExc_TypeError, "types must be a list of types");
            return NULL;
        }
    }
    if (plus_heap_immortalize(types, mortal, spared, limit, &report) < 0) {
        return NULL;
    }
    return Py_BuildValue("(nnNn)", report.objects, report.bytes, report.kept, report.unheld);
}

struct selection {
    PyTypeObject *root;
    PyObject *found;
};

static int
select_instance(PyObject *op, bool frozen, void *arg)
{
    struct selection *selection = arg;

    /* The frozen objects come last.  An object that is being freed must not get a new reference. */
    if (frozen || Py_REFCNT(op) == 0) {
        return frozen;
    }
    if (!PyType_IsSubtype(Py_TYPE(op), selection->root)) {
        return 0;
    }
    return PyList_Append(selection->found, op) < 0 ? -1 : 0;
}

/* Why not gc.get_objects() in Python: it holds a reference to every object for a moment, in which another thread may go
 * on filling a tuple, and fail (heap.c). */
static PyObject *
prefork_instances_of(PyObject *module, PyObject *root)
{
    if (plus_refuses_free_threaded()) {
        return NULL;
    }
    (void)plus_fact_refusal(PLUS_FACT_GC_RINGS);
    if (!PyType_Check(root)) {
        PyErr_SetString(PyExc_TypeError, "prefork_instances_of takes a type");
        return NULL;
    }
    struct selection selection = {(PyTypeObject *)root, PyList_New(0)};
    if (selection.found != NULL && plus_gc_objects_visit(select_instance, &selection) < 0) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        Py_CLEAR(selection.found);
    }
    return selection.found;
}

static PyObject *
prefork_fill_pools(PyObject *module, PyObject *ignored)
{
    Py_ssize_t pools = plus_pools_fill();

    return PyLong_FromSsize_t(pools < 0 ? -1 : pools + plus_malloc_fill());
}

/* Move the objects of the list from the frozen ones to the new ones. */
static PyObject *
prefork_thaw(PyObject *module, PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "prefork_thaw takes a list");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *op = PyList_GET_ITEM(list, i);

        if (PyObject_IS_GC(op) && PyObject_GC_IsTracked(op)) {
            PyObject_GC_UnTrack(op);
            PyObject_GC_Track(op);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *
prefork_keep_forever(PyObject *module, PyObject *op)
{
    Py_INCREF(op); /* never released */
    Py_RETURN_NONE;
}

PyMethodDef plus_prefork_methods[] = {
    PLUS_METHOD("prefork_refusal", prefork_refusal, METH_NOARGS, "$module, /",
                "Return why no object can be made immortal here, or None."),
    PLUS_METHOD_KW(
        "prefork_immortalize", prefork_immortalize, METH_FASTCALL,
        "$module, types, mortal, spared, limit_bytes, /",
        "Make immortal what the collector knows, what hangs on it, and the listed types.\n\n"
        "The collector must be off and nothing frozen.  Kept mortal are objects of the\n"
        "types in the list `mortal`, of types with a finaliser, frames, tracebacks,\n"
        "exceptions, what a weak reference with a callback points to, and the objects in\n"
        "the list `spared`.  At most about limit_bytes are made immortal\n"
        "(None: no limit).  Returns the number of objects, their bytes, a list of (type, "
        "kept, kept for a weak reference), and how many\n"
        "tuples and frozensets stayed mortal as nothing that can be seen holds them."),
    PLUS_METHOD("prefork_instances_of", prefork_instances_of, METH_O, "$module, root, /",
                "Return the objects of the type and its subclasses that the collector knows and\n"
                "that are not frozen.  RuntimeError where its lists cannot be read."),
    PLUS_METHOD("prefork_thaw", prefork_thaw, METH_O, "$module, objects, /",
                "Have the collector look at these frozen objects again."),
    PLUS_METHOD("prefork_fill_pools", prefork_fill_pools, METH_NOARGS, "$module, /",
                "Take the free blocks of half-used pools and of the C heap for good.\n\n"
                "Returns their bytes.  "
                "-1: the objects' allocator is not the usual one, and nothing was taken."),
    PLUS_METHOD("prefork_keep_forever", prefork_keep_forever, METH_O, "$module, op, /",
                "Add one reference that is never given back."),
    {NULL, NULL, 0, NULL},
};
