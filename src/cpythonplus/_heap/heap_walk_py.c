#include "binding.h"

#include "../_base/methods.h"

#include "heap_walk.h"

struct counts {
    Py_ssize_t objects[PLUS_HEAP_AS_TYPE + 1], references;
};

static int
count_object(PyObject *op, PyObject *parent, enum plus_heap_origin origin, void *arg)
{
    (void)op, (void)parent;
    ((struct counts *)arg)->objects[origin]++;
    return 0;
}

static int
count_reference(PyObject *from, PyObject *to, void *arg)
{
    (void)from, (void)to;
    ((struct counts *)arg)->references++;
    return 0;
}

static PyObject *
memory_heap_counts(PyObject *module, PyObject *unused)
{
    struct counts counts = {{0}, 0};
    const struct plus_heap_visitor visitor = {count_object, count_reference, &counts};
    size_t extra_bytes = 0;

    if (plus_heap_walk_raises()) {
        return NULL;
    }
    if (plus_heap_walk(&visitor, &extra_bytes) < 0) {
        return PyErr_NoMemory();
    }
    return Py_BuildValue("((nnnnn)nn)", counts.objects[PLUS_HEAP_LISTED],
                         counts.objects[PLUS_HEAP_FROZEN], counts.objects[PLUS_HEAP_REFERRED],
                         counts.objects[PLUS_HEAP_IN_FRAME], counts.objects[PLUS_HEAP_AS_TYPE],
                         counts.references, (Py_ssize_t)extra_bytes);
}

PyMethodDef plus_heap_walk_methods[] = {
    PLUS_METHOD(
        "memory_heap_counts", memory_heap_counts, METH_NOARGS, "$module, /",
        "Walk over the heap; return ((listed, frozen, referred to, in frames, types),\n"
        "references, bytes that the walk took).  UnsupportedPlatform where it cannot be done."),
    {NULL, NULL, 0, NULL},
};
