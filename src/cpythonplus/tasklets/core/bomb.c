/* Bombs: an exception as a value, on its way to the tasklet that will raise it. */
#include "bomb.h"

#include "pickle_calls.h"

struct bomb {
    PyObject_HEAD PyObject *type, *value, *traceback; /* any may be NULL */
};

static PyObject *
make(PyObject *type, PyObject *value, PyObject *traceback)
{
    struct bomb *self = PyObject_GC_New(struct bomb, &plus_bomb_type);

    if (self == NULL) {
        return NULL;
    }
    self->type = Py_XNewRef(type);
    self->value = Py_XNewRef(value);
    self->traceback = Py_XNewRef(traceback);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* A bomb with MemoryError, for a lack of memory; shared, so nobody changes it.  Made with the module. */
static PyObject *spare;

int
plus_bomb_prepare(void)
{
    if (spare == NULL) {
        spare = make(PyExc_MemoryError, NULL, NULL);
    }
    return spare == NULL ? -1 : 0;
}

PyObject *
plus_bomb_from_error(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyObject *bomb = make(type, value, traceback);

    if (bomb == NULL) {
        PyErr_Clear();
        bomb = Py_NewRef(spare);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return bomb;
}

static PyObject *
none_to_null(PyObject *op)
{
    return op == Py_None ? NULL : op;
}

PyObject *
plus_bomb_from_triple(PyObject *exc, PyObject *value, PyObject *traceback)
{
    value = none_to_null(value);
    traceback = none_to_null(traceback);
    if (traceback != NULL && !PyTraceBack_Check(traceback)) {
        PyErr_SetString(PyExc_TypeError, "third argument must be a traceback object");
        return NULL;
    }
    if (PyExceptionClass_Check(exc)) {
        return make(exc, value, traceback);
    }
    if (!PyExceptionInstance_Check(exc)) {
        PyErr_Format(PyExc_TypeError, "exceptions must be classes, or instances, not %s",
                     Py_TYPE(exc)->tp_name);
        return NULL;
    }
    if (value != NULL) {
        PyErr_SetString(PyExc_TypeError, "instance exception may not have a separate value");
        return NULL;
    }
    PyObject *own = traceback == NULL ? PyException_GetTraceback(exc) : Py_NewRef(traceback);
    PyObject *bomb = make(PyExceptionInstance_Class(exc), exc, own);

    Py_XDECREF(own);
    return bomb;
}

PyObject *
plus_bomb_from_class(PyObject *args, const char *who)
{
    PyObject *klass = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;

    if (klass == NULL || !PyExceptionClass_Check(klass)) {
        PyErr_Format(PyExc_TypeError,
                     klass == NULL ? "%s() takes at least 1 argument"
                                   : "%s needs Exception or string subclass as first parameter",
                     who);
        return NULL;
    }
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *bomb = rest != NULL ? make(klass, rest, NULL) : NULL;

    Py_XDECREF(rest);
    return bomb;
}

PyObject *
plus_bomb_explode(PyObject *op)
{
    struct bomb *self = (struct bomb *)op;
    PyObject *type = Py_XNewRef(self->type);

    if (type == NULL) { /* bomb() was called without arguments */
        PyErr_SetString(PyExc_SystemError, "a bomb without an exception");
    }
    else if (!PyExceptionClass_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a bomb must hold an exception");
        Py_DECREF(type);
    }
    else {
        PyErr_Restore(type, Py_XNewRef(self->value), Py_XNewRef(self->traceback));
    }
    Py_DECREF(op);
    return NULL;
}

static PyObject *
bomb_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"type", "value", "traceback", NULL};
    PyObject *exc = NULL, *value = NULL, *traceback = NULL;

    if (PyTuple_GET_SIZE(args) == 1 && PyTuple_Check(PyTuple_GET_ITEM(args, 0))) {
        args = PyTuple_GET_ITEM(args, 0); /* bomb(sys.exc_info()) */
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:bomb", names, &exc, &value, &traceback)) {
        return NULL;
    }
    return make(exc, value, traceback);
}

static int
bomb_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct bomb *self = (struct bomb *)op;

    Py_VISIT(self->type);
    Py_VISIT(self->value);
    Py_VISIT(self->traceback);
    return 0;
}

static int
bomb_clear(PyObject *op)
{
    struct bomb *self = (struct bomb *)op;

    Py_CLEAR(self->type);
    Py_CLEAR(self->value);
    Py_CLEAR(self->traceback);
    return 0;
}

static void
bomb_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    (void)bomb_clear(op);
    PyObject_GC_Del(op);
}

static PyMemberDef bomb_members[] = {
    {"type", _Py_T_OBJECT, offsetof(struct bomb, type), Py_READONLY, NULL},
    {"value", _Py_T_OBJECT, offsetof(struct bomb, value), Py_READONLY, NULL},
    {"traceback", _Py_T_OBJECT, offsetof(struct bomb, traceback), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef bomb_methods[] = {
    {"__reduce__", plus_bomb_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject plus_bomb_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.bomb",
    .tp_basicsize = sizeof(struct bomb),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = PyDoc_STR("bomb(type=None, value=None, traceback=None)\n--\n\n"
                        "An exception as a value: a tasklet whose tempval it is raises it."),
    .tp_new = bomb_new,
    .tp_dealloc = bomb_dealloc,
    .tp_traverse = bomb_traverse,
    .tp_clear = bomb_clear,
    .tp_members = bomb_members,
    .tp_methods = bomb_methods,
};
