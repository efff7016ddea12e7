/* The binding; exec_watch.h describes its effect and the rejected ways.
 *
 * os.execv and os.execve are C objects with a field for the function that a call runs.  The first watcher replaces that
 * field, once for the life of the process; if the watcher is removed, the field stays, and a call goes straight on.
 * Both functions must be as expected before either is changed.  A call runs the watcher, ignores its result except an
 * exception that must end the program, and then runs the original function.
 */
#include "exec_watch.h"

#define FUNCTIONS 2

/* All are written with the GIL held; a function and its original once. */
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
    PyObject *function = Py_NewRef(watcher); /* it may remove itself */
    PyObject *result = PyObject_Vectorcall(function, args, (size_t)nargs, kwnames);

    Py_DECREF(function);
    if (result == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        PyErr_Clear(); /* wrong arguments, for example: exec itself refuses them */
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

/* 1 if both of them are as expected, 0, or -1 with an exception.  The references are the caller's. */
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
        watched[0].function != NULL; /* an import may run Python code, and let other threads run */
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
