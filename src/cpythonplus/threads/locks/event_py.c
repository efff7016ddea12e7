/* Event: threading.Event.  A flag and a condition over a plain lock. */
#include "condition_py.h"

#include "../../_base/methods.h"
#include "../arguments.h"
#include "../statistics_py.h"

typedef struct {
    PyObject_HEAD plus_condition_object *cond;
    _Atomic bool flag; /* written under the condition's lock, read without it */
    PyObject *dict, *weakrefs;
} event_object;

static inline event_object *
event(PyObject *op)
{
    return (event_object *)op;
}

static bool
is_set(const event_object *self)
{
    return atomic_load_explicit(&self->flag, memory_order_acquire);
}

PLUS_RETURNS(event_is_set, PyBool_FromLong(is_set(event(self))))

static PyObject *
event_is_set_old(PyObject *op, PyObject *ignored)
{
    if (PyErr_WarnEx(PyExc_DeprecationWarning, "isSet() is deprecated, use is_set() instead", 1) <
        0) {
        return NULL;
    }
    return event_is_set(op, NULL);
}

static PyObject *
store(event_object *self, bool value)
{
    if (plus_condition_enter(self->cond) < 0) {
        return NULL;
    }
    atomic_store_explicit(&self->flag, value, memory_order_release);
    if (value) {
        plus_condition_notify(self->cond, UINT32_MAX);
    }
    plus_condition_leave(self->cond);
    Py_RETURN_NONE;
}

PLUS_RETURNS(event_set, store(event(self), true))
PLUS_RETURNS(event_clear_flag, store(event(self), false))

static const struct plus_signature wait_signature = PLUS_SIGNATURE("wait", 0, "timeout");

/* Waits once, as in the standard library: a thread that set() has woken returns True even if clear() came first. */
static int
wait_until(event_object *self, uint64_t deadline_ns)
{
    struct plus_waiter waiter;
    int signaled;

    if (plus_condition_enter(self->cond) < 0) {
        return -1;
    }
    signaled = is_set(self);
    if (!signaled && deadline_ns != 0) {
        plus_waiter_init(&waiter, plus_heeds_signals());
        plus_waiter_tells(&waiter, self, "wait");
        waiter.stays = true;
        switch (plus_condition_sleep(self->cond, &waiter, deadline_ns)) {
        case PLUS_WAIT_SIGNAL:
            signaled = -1;
            break;
        case PLUS_WAIT_TIMED_OUT:
            signaled = 0;
            break;
        default:
            signaled = 1;
        }
    }
    plus_condition_leave(self->cond);
    return signaled;
}

static PyObject *
event_wait(PyObject *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *timeout;
    uint64_t deadline_ns;

    if (plus_arguments(&wait_signature, args, nargs, kwnames, &timeout) < 0 ||
        plus_wait_deadline(timeout, &deadline_ns) < 0) {
        return plus_standard_answer(op, "wait", args, nargs, kwnames);
    }
    if (is_set(event(op))) {
        Py_RETURN_TRUE;
    }
    return plus_truth(wait_until(event(op), deadline_ns));
}

PLUS_RETURNS(event_reinit, plus_none(plus_condition_reinit(event(self)->cond)))
PLUS_RETURNS(event_statistics, plus_statistics_of(&event(self)->cond->queue))

static PyObject *
event_repr(PyObject *op)
{
    return plus_repr_with(op, is_set(event(op)) ? "set" : "unset", 0, 0);
}

static PyObject *
event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct plus_threads_state *state = plus_threads_state(type);
    event_object *self = state != NULL ? (event_object *)type->tp_alloc(type, 0) : NULL;

    if (self == NULL) {
        return NULL;
    }
    self->cond = plus_condition_new(state, NULL);
    if (self->cond == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
event_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    if (plus_no_arguments("Event", args, kwargs) < 0) {
        return -1;
    }
    atomic_store(&event(op)->flag, false);
    return 0;
}

static int
event_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(event(op)->cond);
    Py_VISIT(event(op)->dict);
    return 0;
}

/* The condition is kept: it refers to nothing that leads back here, and methods rely on it. */
static int
event_clear(PyObject *op)
{
    Py_CLEAR(event(op)->dict);
    return 0;
}

static void
event_dealloc(PyObject *op)
{
    PyObject *cond = (PyObject *)event(op)->cond;

    plus_dealloc(op);
    Py_XDECREF(cond);
}

PLUS_GETS(event_get_flag, event_is_set(self, NULL))

static int
event_set_flag(PyObject *op, PyObject *value, void *closure)
{
    int truth = value != NULL ? PyObject_IsTrue(value) : 0;

    if (truth < 0) {
        return -1;
    }
    atomic_store(&event(op)->flag, truth != 0);
    return 0;
}

PyDoc_STRVAR(event_doc, "Event()\n--\n\nA flag that threads wait for: threading.Event.");

static PyMethodDef event_methods[] = {
    PLUS_METHOD("is_set", event_is_set, METH_NOARGS, "$self, /", "Return whether the flag is set."),
    PLUS_METHOD("isSet", event_is_set_old, METH_NOARGS, "$self, /", "Deprecated name of is_set()."),
    PLUS_METHOD("set", event_set, METH_NOARGS, "$self, /",
                "Set the flag and wake all threads that wait for it."),
    PLUS_METHOD("clear", event_clear_flag, METH_NOARGS, "$self, /", "Reset the flag."),
    PLUS_METHOD_KW("wait", event_wait, METH_FASTCALL | METH_KEYWORDS, "$self, /, timeout=None",
                   "Wait until the flag is set; return False if the time was up before.\n\n"
                   "timeout: seconds; None: without limit."),
    {"statistics", event_statistics, METH_NOARGS, plus_statistics_doc},
    {"_at_fork_reinit", event_reinit, METH_NOARGS, plus_reinit_doc},
    PLUS_STANDARD_METHODS,
    {NULL, NULL, 0, NULL},
};

static PyMemberDef event_members[] = {
    PLUS_STANDARD_MEMBERS(event_object),
    {"_cond", Py_T_OBJECT_EX, offsetof(event_object, cond), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef event_getset[] = {
    {"_flag", event_get_flag, event_set_flag, NULL, NULL},
    PLUS_STANDARD_GETSET,
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot event_slots[] = {
    {Py_tp_new, event_new},
    {Py_tp_init, event_init},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_traverse, event_traverse},
    {Py_tp_clear, event_clear},
    {Py_tp_repr, event_repr},
    {Py_tp_methods, event_methods},
    {Py_tp_members, event_members},
    {Py_tp_getset, event_getset},
    {Py_tp_doc, (void *)event_doc},
    {0, NULL},
};

int
plus_event_exec(PyObject *module, struct plus_threads_state *state)
{
    return plus_add_type(module, &state->event, "Event", "threading.Event", sizeof(event_object),
                         Py_TPFLAGS_HAVE_GC, event_slots, NULL);
}
