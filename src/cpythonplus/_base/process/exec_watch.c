/* Binding: see exec_watch.h for what, and what was rejected.
 *
 * os.execv and os.execve are objects of C with a field that says what a call goes to.  The first watcher has that field
 * re-pointed, once for the life of the process; a watcher that is taken off leaves it so, and the call goes straight
 * on.  Both functions must be what they are known to be before either is changed.  A call runs the watcher, ignores
 * what it says but for an exception that is to end the program, and goes on to where it went before.
 */
#include "exec_watch.h"

#define FUNCTIONS 2

/* All written with the GIL held; a function and its original once. */
static PyObject *watcher; /* or NULL */
static struct {
    const char *name;
    PyObject *function; /* strong */
    vectorcallfunc original;
} watched[FUNCTIONS] = {{"execv", NULL, NULL}, {"execve", NULL, NULL}};

static int
tell(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (watcher == NULL) {
        return 0;
    }
    PyObject *function = Py_NewRef(watcher); /* it may take itself off */
    PyObject *result = PyObject_Vectorcall(function, args, (size_t)nargs, kwnames);

    Py_DECREF(function);
    if (result == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        PyErr_Clear(); /* wrong arguments, for one: exec itself refuses them */
    }
    Py_XDECREF(result);
    return 0;
}

static PyObject *
tell_and_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    vectorcallfunc original = watched[callable == watched[0].function ? 0 : 1].original;

    return tell(args, PyVectorcall_NARGS(nargsf), kwnames) < 0
               ? NULL
               : original(callable, args, nargsf, kwnames);
}

/* 1 for both of them found as they are known, 0, or -1 with an exception.  The references are the caller's. */
static int
find(PyObject *posix, PyObject *found[FUNCTIONS])
{
    for (int i = 0; i < FUNCTIONS; i++) {
        found[i] = PyObject_GetAttrString(posix, watched[i].name);
        if (found[i] == NULL) {
            return -1;
        }
        if (!PyCFunction_CheckExact(found[i]) ||
            ((PyCFunctionObject *)found[i])->vectorcall == NULL) {
            return 0;
        }
    }
    return 1;
}

static int
put_in_place(void)
{
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *found[FUNCTIONS] = {NULL};

    if (posix == NULL) {
        return -1;
    }
    int known = find(posix, found);
    bool is_done =
        watched[0].function != NULL; /* an import may run Python, and let other threads run */
    for (int i = 0; known > 0 && !is_done && i < FUNCTIONS; i++) {
        PyCFunctionObject *function = (PyCFunctionObject *)found[i];

        watched[i].function = Py_NewRef(found[i]);
        watched[i].original = function->vectorcall;
        function->vectorcall = tell_and_call;
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        Py_XDECREF(found[i]);
    }
    Py_DECREF(posix);
    return known;
}

static PyObject *
exec_watch(PyObject *Py_UNUSED(module), PyObject *function)
{
    if (watched[0].function == NULL && function != Py_None) {
        int known = put_in_place();
        if (known <= 0) {
            return known < 0 ? NULL : PyBool_FromLong(0);
        }
    }
    Py_XSETREF(watcher, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_TRUE;
}

PyMethodDef plus_exec_watch_methods[] = {
    {"exec_watch", exec_watch, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
