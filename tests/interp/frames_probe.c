/* An extension of test_frames.py: reads the frames of its own caller with _interp/frames/frames.c, as if
 * a tasklet had been parked in the call, and counts what they visit against reference counts. */
#include "_interp/frames/frames.h"
#include "_interp/frames/stack_depth.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What the programs leave in variables and on operand stacks.  Its memory is never given back, so
 * that one which is visited too late is seen, and nothing worse happens. */
struct marker {
    PyObject_HEAD PyObject *tag;
    PyObject *weakrefs;
    struct marker *next;
    int visited;
    bool asked;
};

static struct marker *markers;
static int late;
static PyTypeObject marker_type;

static PyObject *
marker_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *tag;

    if (!PyArg_ParseTuple(args, "U", &tag)) {
        return NULL;
    }
    struct marker *self = (struct marker *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->tag = Py_NewRef(tag);
        self->next = markers;
        markers = self;
    }
    return (PyObject *)self;
}

static void
marker_dealloc(PyObject *op)
{
    PyObject_ClearWeakRefs(op);
}

static struct _PyInterpreterFrame *
innermost(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_Get()->current_frame;
#else
    return PyThreadState_Get()->cframe->current_frame;
#endif
}

static int
count(PyObject *op, void *arg)
{
    (void)arg;
    late += Py_REFCNT(op) <= 0;
    if (Py_IS_TYPE(op, &marker_type)) {
        ((struct marker *)op)->visited++;
    }
    return 0;
}

/* A list of (tag, how often visited, reference count) of the markers that live, oldest last. */
static PyObject *
report(const struct plus_frames *frames)
{
    PyObject *list = PyList_New(0);

    for (struct marker *it = markers; it != NULL; it = it->next) {
        it->visited = 0;
    }
    (void)plus_frames_visit(frames, count, NULL);
    for (struct marker *it = markers; it != NULL && list != NULL; it = it->next) {
        if (Py_REFCNT(it) > 0) {
            PyObject *row = Py_BuildValue("(Oin)", it->tag, it->visited, Py_REFCNT(it));
            if (row == NULL || PyList_Append(list, row) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(row);
        }
    }
    return list;
}

static PyObject *
take(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct plus_frames frames = {.top = innermost()};

    return report(&frames);
}

static PyObject *
take_one(PyObject *self, PyObject *arg)
{
    return take(self, NULL, 0, NULL);
}

static PyObject *
take_uncalled(PyObject *self, PyObject *arg)
{
    struct plus_frames frames = {.top = innermost(), .uncalled = true};

    return report(&frames);
}

/* One report, and then the end. */
static PyObject *
marker_next(PyObject *op)
{
    struct marker *self = (struct marker *)op;
    bool asked = self->asked;

    self->asked = true;
    return asked ? NULL : take(op, NULL, 0, NULL);
}

/* interrupt(handler, ...): after the call, while the arguments are gone, the signal's handler runs. */
static PyObject *
interrupt(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)PyErr_SetInterruptEx(SIGUSR1);
    return Py_NewRef(args[0]);
}

/* From a copy of the memory that the frames lie in. */
static PyObject *
take_moved(PyObject *module, PyObject *arg)
{
    static char *copy; /* not local, lest the compiler find that nobody reads it */
    _PyStackChunk *chunk = PyThreadState_Get()->datastack_chunk;
    char *low = (char *)chunk;

    copy = malloc(chunk->size);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(copy, chunk, chunk->size);
    struct plus_frames frames = {.top = innermost(), .moved = {low, low + chunk->size, copy - low}};
    PyObject *result = plus_frames_object(&frames) == NULL ? report(&frames) : NULL;
    free(copy);
    return result;
}

static PyObject *
take_late(PyObject *module, PyObject *arg)
{
    int result = late;

    late = 0;
    return PyLong_FromLong(result);
}

static PyObject *
nesting(PyObject *module, PyObject *arg)
{
    struct plus_frames frames = {.top = innermost()};

    return PyLong_FromLong(plus_frames_nesting(&frames));
}

static PyObject *
may_move(PyObject *module, PyObject *arg)
{
    struct plus_frames frames = {.top = innermost()};

    return PyBool_FromLong(plus_frames_may_move(&frames));
}

static PyObject *
frame_object(PyObject *module, PyObject *arg)
{
    struct plus_frames frames = {.top = innermost()};
    PyObject *result = plus_frames_object(&frames);

    return result != NULL ? result : Py_NewRef(Py_None);
}

static int
append_position(PyCodeObject *code, int offset, void *list)
{
    PyObject *row = Py_BuildValue("(Oi)", code, plus_frames_line(code, offset));
    int rc = row == NULL ? -1 : PyList_Append(list, row);

    Py_XDECREF(row);
    return rc;
}

static PyObject *
positions(PyObject *module, PyObject *arg)
{
    struct plus_frames frames = {.top = innermost()};
    PyObject *list = PyList_New(0);

    if (list != NULL && plus_frames_each(&frames, append_position, list) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* A list of (offset, next, oparg of a loop, depth, base, kept, unpacked, kind) of each call of a code object. */
static PyObject *
calls(PyObject *module, PyObject *code)
{
    PyObject *list = PyList_New(0);
    Py_ssize_t bytes = 2 * Py_SIZE(code);

    for (int offset = 0; list != NULL && offset < bytes; offset++) {
        const struct plus_call_site *site = plus_stack_depth_at((PyCodeObject *)code, offset);
        if (site != NULL) {
            int oparg = site->kind == PLUS_SITE_CALL ? 0 : site->oparg;
            PyObject *row =
                Py_BuildValue("(iiiiiiii)", site->offset, site->next, oparg, site->depth,
                              site->base, site->kept, site->unpacked, (int)site->kind);
            if (row == NULL || PyList_Append(list, row) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(row);
        }
    }
    return list;
}

#define CALL_OF(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef marker_methods[] = {
    {"take", CALL_OF(take), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"take_none", take_one, METH_NOARGS, NULL},
    {"take_one", take_one, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject marker_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "frames_probe.Marker",
    .tp_basicsize = sizeof(struct marker),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = marker_new,
    .tp_dealloc = marker_dealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = marker_next,
    .tp_methods = marker_methods,
    .tp_weaklistoffset = offsetof(struct marker, weakrefs),
};

static PyMethodDef methods[] = {
    {"take", CALL_OF(take), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"take_none", take_one, METH_NOARGS, NULL},
    {"take_one", take_one, METH_O, NULL},
    {"take_uncalled", take_uncalled, METH_NOARGS, NULL},
    {"take_moved", take_moved, METH_NOARGS, NULL},
    {"take_late", take_late, METH_NOARGS, NULL},
    {"nesting", nesting, METH_NOARGS, NULL},
    {"may_move", may_move, METH_NOARGS, NULL},
    {"frame_object", frame_object, METH_NOARGS, NULL},
    {"positions", positions, METH_NOARGS, NULL},
    {"interrupt", CALL_OF(interrupt), METH_FASTCALL, NULL},
    {"calls", calls, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "frames_probe", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC
PyInit_frames_probe(void)
{
    PyObject *result = PyType_Ready(&marker_type) < 0 ? NULL : PyModule_Create(&module);

#ifdef Py_GIL_DISABLED
    if (result != NULL) {
        PyUnstable_Module_SetGIL(result, Py_MOD_GIL_NOT_USED);
    }
#endif
    if (result != NULL && PyModule_AddObjectRef(result, "Marker", (PyObject *)&marker_type) < 0) {
        Py_CLEAR(result);
    }
    return result;
}
