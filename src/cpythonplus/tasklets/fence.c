/* greenlet's functions are replaced in its own tables, which is where all its callers find them: C code (gevent)
 * in the table "greenlet._C_API", Python code in the type's table of methods, whose entries the method objects
 * point to.  C code that has looked the table up before has its address, and finds what is in it now.
 *
 * So it does not matter who has imported greenlet, and when, only that this comes before the first switch in a
 * tasklet: at the import of tasklets if greenlet is there, else at its own (_life.py).
 *
 * Rejected: to find out at each switch of tasklets whether greenlets are about.  It would cost every program, and
 * a greenlet that begins in a tasklet cannot be seen there.
 */
#include "fence.h"

#include "methods.h"
#include "task.h"

/* Places in greenlet's table; they are part of its binary interface. */
enum { TYPE = 0, THROW = 5, SWITCH = 6, ACTIVE = 10 };

typedef PyObject *(*switch_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*throw_function)(PyObject *, PyObject *, PyObject *, PyObject *);

static switch_function api_switch, method_switch;
static throw_function api_throw;
static PyCFunction method_throw;
static int (*is_active)(PyObject *);
static destructor dealloc;

static bool
in_tasklet(void)
{
    const struct plus_scheduler *sched = plus_scheduler_own;

    return sched != NULL && sched->running != sched->main;
}

static bool
refuse(void)
{
    if (in_tasklet()) {
        PyErr_SetString(PyExc_RuntimeError, "greenlets can be switched in the main tasklet only");
        return true;
    }
    return false;
}

static PyObject *
fenced_api_switch(PyObject *greenlet, PyObject *args, PyObject *kwargs)
{
    return refuse() ? NULL : api_switch(greenlet, args, kwargs);
}

static PyObject *
fenced_api_throw(PyObject *greenlet, PyObject *type, PyObject *value, PyObject *traceback)
{
    return refuse() ? NULL : api_throw(greenlet, type, value, traceback);
}

static PyObject *
fenced_switch(PyObject *greenlet, PyObject *args, PyObject *kwargs)
{
    return refuse() ? NULL : method_switch(greenlet, args, kwargs);
}

static PyObject *
fenced_throw(PyObject *greenlet, PyObject *args)
{
    return refuse() ? NULL : method_throw(greenlet, args);
}

/* greenlet would switch to it, to raise GreenletExit there. */
static void
fenced_dealloc(PyObject *greenlet)
{
    if (!in_tasklet() || is_active(greenlet) != 1) {
        dealloc(greenlet);
        return;
    }
    Py_SET_REFCNT(greenlet, 1);
    if (PyType_HasFeature(Py_TYPE(greenlet), Py_TPFLAGS_HEAPTYPE)) {
        Py_INCREF(Py_TYPE(greenlet)); /* which the derived type's function gives up next */
    }
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

    if (to_switch == NULL || to_throw == NULL) {
        return;
    }
    api_switch = (switch_function)api[SWITCH];
    api_throw = (throw_function)api[THROW];
    is_active = (int (*)(PyObject *))api[ACTIVE];
    method_switch = (switch_function)(void (*)(void))to_switch->ml_meth;
    method_throw = to_throw->ml_meth;
    dealloc = type->tp_dealloc;
    api[SWITCH] = (void *)fenced_api_switch;
    api[THROW] = (void *)fenced_api_throw;
    to_switch->ml_meth = (PyCFunction)(void (*)(void))fenced_switch;
    to_throw->ml_meth = fenced_throw;
    type->tp_dealloc = fenced_dealloc;
}
