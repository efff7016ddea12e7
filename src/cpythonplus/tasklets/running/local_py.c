/* The type `local`: each tasklet has its own attributes of the object.
 *
 * `values` has each tasklet's dict, by a weak reference to the tasklet, whose callback removes it.  Before each
 * look-up the running tasklet's dict is put where the interpreter expects the object's dict.  The interpreter reads it
 * there before any Python code runs, so no lock is needed.
 *
 * `user` says whose dict that is.  It is the very reference whose callback removes the dict: a collection clears
 * references with callbacks first, and from 3.14 on references without callbacks only after the finalisers, in which a
 * tasklet still runs.
 */
#include "binding.h"

#include "../core/task.h"

#include "../../_base/methods.h"
#include "../../_base/raise.h"

struct local {
    PyObject_HEAD PyObject *dict; /* of the last user; borrowed from `values` */
    PyObject *user;               /* weak reference to that tasklet, or NULL */
    PyObject *values;             /* weak reference -> (that reference, the tasklet's dict) */
    PyObject *args, *kwargs;      /* for __init__; kwargs may be NULL */
    Py_ssize_t sweep_at;          /* number of tasklets at which to remove ended ones */
    PyObject *weakrefs;
};

/* The first number of tasklets at which it looks for ended ones. */
#define SWEEP_FROM 64

static struct local *
self_of(PyObject *op)
{
    return (struct local *)op;
}

static struct plus_tasklet *
tasklet_of(PyObject *reference)
{
    return (struct plus_tasklet *)((PyWeakReference *)reference)->wr_object;
}

/* The callback of a weak reference, when the tasklet is gone. */
static PyObject *
forget(PyObject *values, PyObject *reference)
{
    if (PyDict_DelItem(values, reference) < 0) {
        PyErr_Clear(); /* sweep() has removed it already */
    }
    Py_RETURN_NONE;
}

static PyMethodDef forget_def = {"forget", forget, METH_O, NULL};

static PyObject *
reference_to(PyObject *values, struct plus_tasklet *task)
{
    PyObject *callback = PyCFunction_New(&forget_def, values);
    PyObject *reference = callback != NULL ? PyWeakref_NewRef((PyObject *)task, callback) : NULL;

    Py_XDECREF(callback);
    return reference;
}

static bool
has_ended(PyObject *reference)
{
    PyObject *referent = (PyObject *)tasklet_of(reference);

    return referent == Py_None || !tasklet_of(reference)->alive ||
           tasklet_of(reference)->sched->tstate == NULL;
}

/* Removes ended tasklets; values may refer to their tasklet, which then outlives its end. */
static int
sweep(struct local *self)
{
    PyObject *references = PyDict_Keys(self->values);

    if (references == NULL) {
        return -1;
    }
    Py_CLEAR(self->user); /* a tasklet that has ended may be bound and run again */
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(references); i++) {
        if (has_ended(PyList_GET_ITEM(references, i))) {
            Py_DECREF(forget(self->values, PyList_GET_ITEM(references, i)));
        }
    }
    Py_DECREF(references);
    self->sweep_at = 2 * PyDict_GET_SIZE(self->values) + SWEEP_FROM;
    return 0;
}

static void
put_in_place(struct local *self, PyObject *both)
{
    self->dict = PyTuple_GET_ITEM(both, 1);
    Py_XSETREF(self->user, Py_NewRef(PyTuple_GET_ITEM(both, 0)));
}

/* Gives the running tasklet an empty dict.  Returns 0, or -1 with an exception. */
static int
add_user(struct local *self, struct plus_tasklet *task)
{
    if (PyDict_GET_SIZE(self->values) >= self->sweep_at && sweep(self) < 0) {
        return -1;
    }
    PyObject *reference = reference_to(self->values, task);
    PyObject *dict = PyDict_New();
    PyObject *both = reference != NULL && dict != NULL ? PyTuple_Pack(2, reference, dict) : NULL;
    int rc = both != NULL ? PyDict_SetItem(self->values, reference, both) : -1;

    if (rc == 0) {
        put_in_place(self, both);
    }
    Py_XDECREF(both);
    Py_XDECREF(dict);
    Py_XDECREF(reference);
    return rc;
}

static int
call_init(PyObject *op, struct plus_tasklet *task)
{
    initproc init = Py_TYPE(op)->tp_init;

    if (init == PyBaseObject_Type.tp_init ||
        self_of(op)->args == NULL || /* the object is garbage, and has been cleared */
        init(op, self_of(op)->args, self_of(op)->kwargs) == 0) {
        return 0;
    }
    struct plus_raised raised = plus_raised_take();

    PyObject *reference = PyWeakref_NewRef((PyObject *)task, NULL);

    Py_CLEAR(self_of(op)->user);
    if (reference == NULL || PyDict_DelItem(self_of(op)->values, reference) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(reference);
    plus_raised_put(raised);
    return -1;
}

/* Looks up a tasklet that is not `user`, and makes it the user. */
static int
find_user(PyObject *op, struct plus_tasklet *task)
{
    struct local *self = self_of(op);
    PyObject *reference = PyWeakref_NewRef((PyObject *)task, NULL);

    if (reference == NULL) {
        return -1;
    }
    PyObject *both = PyDict_GetItemWithError(self->values, reference);

    if (both != NULL) {
        put_in_place(self, both);
    }
    Py_DECREF(reference);
    if (both != NULL) {
        return 0;
    }
    if (PyErr_Occurred() || add_user(self, task) < 0) {
        return -1;
    }
    if (call_init(op, task) < 0) {
        return -1;
    }
    /* __init__ may have let other tasklets run that used the object. */
    return tasklet_of(self->user) == task ? 0 : find_user(op, task);
}

/* Puts the running tasklet's dict in place.  Returns 0, or -1 with an exception. */
static inline int
turn_to_user(PyObject *op)
{
    struct plus_scheduler *sched = plus_scheduler_get();

    if (sched == NULL) {
        return -1;
    }
    if (self_of(op)->user != NULL && tasklet_of(self_of(op)->user) == sched->running) {
        return 0;
    }
    return find_user(op, sched->running);
}

PLUS_RETURNS(local_getattro, turn_to_user(self) < 0 ? NULL : PyObject_GenericGetAttr(self, arg))

static int
local_setattro(PyObject *op, PyObject *name, PyObject *value)
{
    return turn_to_user(op) < 0 ? -1 : PyObject_GenericSetAttr(op, name, value);
}

PLUS_GETS(local_dict, turn_to_user(self) < 0 ? NULL : Py_NewRef(self_of(self)->dict))

static PyObject *
local_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct plus_scheduler *sched = plus_scheduler_get();
    bool given = PyTuple_GET_SIZE(args) != 0 || (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0);

    if (sched == NULL) {
        return NULL;
    }
    if (given && type->tp_init == PyBaseObject_Type.tp_init) {
        PyErr_SetString(PyExc_TypeError, "Initialization arguments are not supported");
        return NULL;
    }
    PyObject *values = PyDict_New(); /* made before the collector can show the object to any code */
    struct local *self = values != NULL ? (struct local *)type->tp_alloc(type, 0) : NULL;

    if (self == NULL) {
        Py_XDECREF(values);
        return NULL;
    }
    self->args = Py_NewRef(args);
    self->kwargs = Py_XNewRef(kwargs);
    self->values = values;
    self->sweep_at = SWEEP_FROM;
    /* type.__call__ calls __init__ after this. */
    if (add_user(self, sched->running) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
local_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(self_of(op)->user);
    Py_VISIT(self_of(op)->values);
    Py_VISIT(self_of(op)->args);
    Py_VISIT(self_of(op)->kwargs);
    return 0;
}

static int
local_clear(PyObject *op)
{
    self_of(op)->dict = NULL;
    Py_CLEAR(self_of(op)->user);
    if (self_of(op)->values != NULL) {
        PyDict_Clear(self_of(op)->values); /* the references' callbacks hold the dict itself */
    }
    Py_CLEAR(self_of(op)->args);
    Py_CLEAR(self_of(op)->kwargs);
    return 0;
}

static void
local_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    PyObject_ClearWeakRefs(op);
    (void)local_clear(op);
    Py_CLEAR(self_of(op)->values);
    Py_TYPE(op)->tp_free(op);
}

static PyGetSetDef local_getset[] = {
    {"__dict__", local_dict, NULL, PyDoc_STR("The running tasklet's attributes."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject plus_task_local_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cpythonplus.tasklets.locks.local",
    .tp_basicsize = sizeof(struct local),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        PyDoc_STR("local(*args, **kwargs)\n--\n\n"
                  "Attributes that each tasklet, and so each thread, has for itself:\n"
                  "threading.local.  A tasklet's are gone with it.  A subclass's __init__ is\n"
                  "called for each tasklet that uses the object, with the arguments given here."),
    .tp_new = local_new,
    .tp_alloc = PyType_GenericAlloc,
    .tp_free = PyObject_GC_Del,
    .tp_dealloc = local_dealloc,
    .tp_traverse = local_traverse,
    .tp_clear = local_clear,
    .tp_getattro = local_getattro,
    .tp_setattro = local_setattro,
    .tp_getset = local_getset,
    .tp_dictoffset = offsetof(struct local, dict),
    .tp_weaklistoffset = offsetof(struct local, weakrefs),
};
