/* greenlet's functions are replaced in its own tables, where all callers find them.  C code (gevent) uses the table
 * "greenlet._C_API"; Python code uses the type's method table, to whose entries the method objects point.  C code that
 * has looked the C table up before keeps its address, and finds the new entries.
 *
 * So it does not matter which module imported greenlet, and when; the replacement only has to precede the first switch
 * in a tasklet.  It is done when tasklets is imported, if greenlet is there, otherwise when greenlet is imported
 * (_life.py).
 *
 * greenlet knows one C stack per thread.  A greenlet that is left has a copy of its part, which is put back to the same
 * addresses.  So a switch is correct if everything that it leads to lies on the C stack that runs:
 *
 *     the current greenlet    began here, or is the thread's main one: that stands for everything below all others,
 *                             which is the running tasklet, as no tasklet is inside of a greenlet
 *     the next one            began here, or begins now
 *     its parents             the same, as it goes to them by itself when it ends.  No parent may begin then, as that
 *                             would not be seen here
 *
 * `begun` maps the greenlets that began in tasklets to their C stacks; all others lie on the thread's own, which is the
 * main tasklet's.  It does not map to tasklets: a tasklet that begins on the C stack of one that has ended may go on
 * with the greenlets that the other has left.
 *
 * Rejected: giving each tasklet a main greenlet of its own; that is greenlet's own thread state, without an interface.
 *
 * Rejected: checking at each switch of tasklets whether greenlets are in use; it would cost every program, and cannot
 * see a greenlet that begins in a tasklet. */
#include "fence.h"

#include "../../_base/methods.h"
#include "task.h"

/* Indices in greenlet's C table; they are part of its binary interface. */
enum {
    TYPE = 0,
    CURRENT = 4,
    THROW = 5,
    SWITCH = 6,
    SET_PARENT = 7,
    MAIN = 8,
    ACTIVE = 10,
    PARENT = 11
};

typedef PyObject *(*switch_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*throw_function)(PyObject *, PyObject *, PyObject *, PyObject *);

static PyTypeObject *greenlet_type;
static switch_function api_switch, method_switch;
static throw_function api_throw;
static PyCFunction method_throw;
static int (*api_set_parent)(PyObject *, PyObject *);
static setter set_parent;
static int (*is_main)(PyObject *), (*is_active)(PyObject *);
static PyObject *(*current)(void), *(*parent_of)(PyObject *);
static destructor dealloc;

static PyObject *begun; /* dict: address of a greenlet -> address of its C stack; or NULL */

static struct plus_stack *
here(void)
{
    return plus_scheduler_own != NULL ? plus_scheduler_own->running->stack : NULL;
}

/* Whether all greenlets lie on the C stack of their thread. */
static bool
is_simple(void)
{
    return here() == NULL && (begun == NULL || PyDict_GET_SIZE(begun) == 0);
}

/* Finds the C stack of an active greenlet; NULL: the thread's own.  Returns -1 without memory. */
static int
find_stack(PyObject *greenlet, struct plus_stack **stack)
{
    PyObject *key = PyLong_FromVoidPtr(greenlet);
    PyObject *found = key != NULL && begun != NULL ? PyDict_GetItemWithError(begun, key) : NULL;

    *stack = found != NULL ? PyLong_AsVoidPtr(found) : NULL;
    Py_XDECREF(key);
    return PyErr_Occurred() ? -1 : 0;
}

/* Notes the C stack that the greenlet begins on; NULL: forgets the greenlet.  Returns -1 without memory. */
static int
note_stack(PyObject *greenlet, struct plus_stack *stack)
{
    if (begun == NULL && (begun = PyDict_New()) == NULL) {
        return -1;
    }
    PyObject *key = PyLong_FromVoidPtr(greenlet);
    PyObject *value = stack != NULL ? PyLong_FromVoidPtr(stack) : NULL;
    int result = -1;

    if (key != NULL && stack == NULL) {
        result = PyDict_Contains(begun, key);
        result = result > 0 ? PyDict_DelItem(begun, key) : result;
    }
    else if (key != NULL && value != NULL) {
        result = PyDict_SetItem(begun, key, value);
    }
    Py_XDECREF(key);
    Py_XDECREF(value);
    return result;
}

static int
refuse(void)
{
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "greenlets can be switched only in the tasklet that they have begun in");
    }
    return -1;
}

/* Whether the greenlet and its parents may run on `stack`.  Only the greenlet itself may not have begun yet. */
static bool
leads_to(PyObject *greenlet, const struct plus_stack *stack)
{
    PyObject *at = Py_NewRef(greenlet);
    bool fits = true;

    while (fits && at != NULL && !is_main(at)) {
        struct plus_stack *its;
        PyObject *next = parent_of(at);

        if (is_active(at)) {
            fits = find_stack(at, &its) == 0 && its == stack;
        }
        else {
            fits = at == greenlet || stack == NULL;
        }
        Py_SETREF(at, next);
    }
    Py_XDECREF(at);
    return fits;
}

static bool
current_is(const struct plus_stack *stack)
{
    PyObject *now = current();
    struct plus_stack *its = NULL;
    bool fits = now != NULL && (is_main(now) || (find_stack(now, &its) == 0 && its == stack));

    Py_XDECREF(now);
    return fits;
}

/* Checks each switch before it happens: 0, or -1 with RuntimeError. */
static int
enter(PyObject *greenlet)
{
    struct plus_stack *stack = here();

    if (is_simple() || !PyObject_TypeCheck(greenlet, greenlet_type)) {
        return 0;
    }
    if (!current_is(stack) || !leads_to(greenlet, stack)) {
        return refuse();
    }
    if (!is_active(greenlet) && !is_main(greenlet) && note_stack(greenlet, stack) < 0) {
        return -1;
    }
    if (stack != NULL) {
        plus_scheduler_own->running->has_greenlets = true;
    }
    return 0;
}

static PyObject *
fenced_api_switch(PyObject *greenlet, PyObject *args, PyObject *kwargs)
{
    return enter(greenlet) < 0 ? NULL : api_switch(greenlet, args, kwargs);
}

static PyObject *
fenced_api_throw(PyObject *greenlet, PyObject *type, PyObject *value, PyObject *traceback)
{
    return enter(greenlet) < 0 ? NULL : api_throw(greenlet, type, value, traceback);
}

static PyObject *
fenced_switch(PyObject *greenlet, PyObject *args, PyObject *kwargs)
{
    return enter(greenlet) < 0 ? NULL : method_switch(greenlet, args, kwargs);
}

PLUS_RETURNS(fenced_throw, enter(self) < 0 ? NULL : method_throw(self, arg))

/* Checks a new parent: an active greenlet goes to its parent at its end. */
static int
allow_parent(PyObject *greenlet, PyObject *parent)
{
    struct plus_stack *stack;

    if (is_simple() || parent == NULL || !PyObject_TypeCheck(parent, greenlet_type) ||
        !is_active(greenlet)) {
        return 0;
    }
    bool begins = !is_active(parent) && !is_main(parent);

    if (find_stack(greenlet, &stack) < 0 || (begins && stack != NULL) || !leads_to(parent, stack)) {
        return refuse();
    }
    return 0;
}

static int
fenced_set_parent(PyObject *greenlet, PyObject *parent, void *closure)
{
    return allow_parent(greenlet, parent) < 0 ? -1 : set_parent(greenlet, parent, closure);
}

static int
fenced_api_set_parent(PyObject *greenlet, PyObject *parent)
{
    return allow_parent(greenlet, parent) < 0 ? -1 : api_set_parent(greenlet, parent);
}

/* Whether greenlet may switch to a greenlet whose last reference is gone, to raise GreenletExit there.  The current
 * one is its parent then. */
static bool
may_end(PyObject *greenlet)
{
    struct plus_stack *stack = NULL;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    bool may = find_stack(greenlet, &stack) == 0 && stack == here() && current_is(stack);

    PyErr_Restore(type, value, traceback);
    return may;
}

static void
fenced_dealloc(PyObject *greenlet)
{
    bool known = begun != NULL && PyDict_GET_SIZE(begun) > 0;

    if (is_active(greenlet) != 1) {
        PyObject *type, *value, *traceback;

        PyErr_Fetch(&type, &value, &traceback);
        if (!known || note_stack(greenlet, NULL) == 0) {
            PyErr_Restore(type, value, traceback);
            dealloc(greenlet);
            return;
        }
        /* no memory to forget it: a new greenlet at its address would inherit the entry */
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
    else if (is_simple() || may_end(greenlet)) {
        dealloc(greenlet); /* its entry is overwritten when a greenlet at its address begins */
        return;
    }
    Py_SET_REFCNT(greenlet, 1);
    if (PyType_HasFeature(Py_TYPE(greenlet), Py_TPFLAGS_HEAPTYPE)) {
        Py_INCREF(Py_TYPE(greenlet)); /* the derived type's dealloc drops it next */
    }
}

static PyGetSetDef *
find_attribute(PyGetSetDef *attribute, const char *name)
{
    while (attribute != NULL && attribute->name != NULL && strcmp(attribute->name, name) != 0) {
        attribute++;
    }
    return attribute != NULL && attribute->name != NULL ? attribute : NULL;
}

void
plus_fence_greenlets(void)
{
    void **api = dealloc == NULL ? PyCapsule_Import("greenlet._C_API", 0) : NULL;

    if (api == NULL) {
        PyErr_Clear();
        return;
    }
    PyTypeObject *type = api[TYPE];
    PyMethodDef *to_switch =
        plus_find_method(type->tp_methods, "switch", METH_VARARGS | METH_KEYWORDS);
    PyMethodDef *to_throw = plus_find_method(type->tp_methods, "throw", METH_VARARGS);
    PyGetSetDef *parent = find_attribute(type->tp_getset, "parent");

    if (to_switch == NULL || to_throw == NULL || parent == NULL || parent->set == NULL) {
        return;
    }
    greenlet_type = type;
    current = (PyObject * (*)(void)) api[CURRENT];
    parent_of = (PyObject * (*)(PyObject *)) api[PARENT];
    is_main = (int (*)(PyObject *))api[MAIN];
    api_set_parent = (int (*)(PyObject *, PyObject *))api[SET_PARENT];
    set_parent = parent->set;
    api_switch = (switch_function)api[SWITCH];
    api_throw = (throw_function)api[THROW];
    is_active = (int (*)(PyObject *))api[ACTIVE];
    method_switch = (switch_function)(void (*)(void))to_switch->ml_meth;
    method_throw = to_throw->ml_meth;
    dealloc = type->tp_dealloc;
    api[SWITCH] = (void *)fenced_api_switch;
    api[THROW] = (void *)fenced_api_throw;
    api[SET_PARENT] = (void *)fenced_api_set_parent;
    parent->set = fenced_set_parent;
    to_switch->ml_meth = (PyCFunction)(void (*)(void))fenced_switch;
    to_throw->ml_meth = fenced_throw;
    type->tp_dealloc = fenced_dealloc;
}
