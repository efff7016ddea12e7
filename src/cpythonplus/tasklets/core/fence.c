/* greenlet's functions are replaced in its own tables, which is where all its callers find them: C code (gevent)
 * in the table "greenlet._C_API", Python code in the type's table of methods, whose entries the method objects
 * point to.  C code that has looked the table up before has its address, and finds what is in it now.
 *
 * So it does not matter who has imported greenlet, and when, only that this comes before the first switch in a
 * tasklet: at the import of tasklets if greenlet is there, else at its own (_life.py).
 *
 * greenlet knows one C stack of a thread.  A greenlet that is left has a copy of its part, which is put back where it was.  So
 * a switch is right where all that it leads to lies on the C stack that runs:
 *
 *     the current greenlet   began here, or is the thread's main one: that stands for whatever is below all others, which
 *                            is the tasklet that runs, as no tasklet is inside of a greenlet
 *     the next one           began here, or begins now
 *     its parents            the same, as it goes to them by itself when it ends.  None that is to begin then, as that
 *                            would not be seen here
 *
 * `begun` has the C stacks of those that began in tasklets; all others lie on the thread's own, which is the main tasklet's.
 * Not the tasklet: one that begins on the C stack of one that has ended may go on with what that has left.
 *
 * Rejected: to give each tasklet a main greenlet of its own.  It is greenlet's own state of the thread, without a door.
 *
 * Rejected: to find out at each switch of tasklets whether greenlets are about.  It would cost every program, and
 * a greenlet that begins in a tasklet cannot be seen there. */
#include "fence.h"

#include "../methods.h"
#include "task.h"

/* Places in greenlet's table; they are part of its binary interface. */
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

static PyObject *begun; /* a dict of addresses: of the C stack by that of the greenlet; or NULL */

static struct plus_stack *
here(void)
{
    return plus_scheduler_own != NULL ? plus_scheduler_own->running->stack : NULL;
}

/* Whether any may lie elsewhere than on the C stack of their thread. */
static bool
is_simple(void)
{
    return here() == NULL && (begun == NULL || PyDict_GET_SIZE(begun) == 0);
}

/* Of one that is active.  -1 without memory. */
static int
find_stack(PyObject *greenlet, struct plus_stack **stack)
{
    PyObject *key = PyLong_FromVoidPtr(greenlet);
    PyObject *found = key != NULL && begun != NULL ? PyDict_GetItemWithError(begun, key) : NULL;

    *stack = found != NULL ? PyLong_AsVoidPtr(found) : NULL;
    Py_XDECREF(key);
    return PyErr_Occurred() ? -1 : 0;
}

/* Notes where it begins, or (NULL) forgets what is known of it.  -1 without memory. */
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

/* Whether it and its parents may run on a C stack.  A greenlet that has not begun may be the first one only. */
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

/* Before each switch: 0, or -1 with RuntimeError. */
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

static PyObject *
fenced_throw(PyObject *greenlet, PyObject *args)
{
    return enter(greenlet) < 0 ? NULL : method_throw(greenlet, args);
}

/* One that is active goes to its parent at its end. */
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

/* Whether greenlet may switch to one whose last reference is gone, to raise GreenletExit there.  Its parent is then the
 * current one. */
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
        PyErr_Clear(); /* no memory: another one would have its address, and what is known of it */
        PyErr_Restore(type, value, traceback);
    }
    else if (is_simple() || may_end(greenlet)) {
        dealloc(greenlet); /* what is known of it is forgotten when one with its address begins */
        return;
    }
    Py_SET_REFCNT(greenlet, 1);
    if (PyType_HasFeature(Py_TYPE(greenlet), Py_TPFLAGS_HEAPTYPE)) {
        Py_INCREF(Py_TYPE(greenlet)); /* which the derived type's function gives up next */
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
