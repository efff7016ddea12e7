/* The profile functions of all threads, for a tracer of ours to preserve.
 *
 * When memray's tracer begins, it sets the profile function of every thread; when it ends, it clears that of every
 * thread.  The program may have one of its own (sys.setprofile(), yappi), and may set one meanwhile: it is read before
 * the tracer ends and set again afterwards. */
#define _GNU_SOURCE
#include "../../_interp/frames/pystate.h"

#include "../../_base/methods.h"
#include "../../_base/rows.h"
#include "../binding.h"

#include <dlfcn.h>
#include <stdint.h>

typedef int (*set_profile)(PyThreadState *tstate, Py_tracefunc function, PyObject *object);

static PyThreadState *
first_thread(void)
{
    return PyInterpreterState_ThreadHead(PyInterpreterState_Get());
}

static PyObject *
profilers(PyObject *module, PyObject *unused)
{
    PyObject *rows = PyList_New(0);

    for (PyThreadState *tstate = first_thread(); tstate != NULL && rows != NULL;
         tstate = PyThreadState_Next(tstate)) {
        Py_tracefunc function = plus_pystate_tracefunc(tstate, true);
        PyObject *object = plus_pystate_traceobj(tstate, true);
        if (function != NULL) {
            plus_append_row(&rows,
                            Py_BuildValue("(KKO)", (unsigned long long)PyThreadState_GetID(tstate),
                                          (unsigned long long)(uintptr_t)function,
                                          object != NULL ? object : Py_None));
        }
    }
    return rows;
}

static PyThreadState *
thread_of(uint64_t id)
{
    PyThreadState *tstate = first_thread();

    while (tstate != NULL && PyThreadState_GetID(tstate) != id) {
        tstate = PyThreadState_Next(tstate);
    }
    return tstate;
}

/* Sets the profile function of one thread, unless it has ended or has one again.  0, or -1 with an exception. */
static int
set_one(set_profile set, PyObject *row)
{
    unsigned long long id, function;
    PyObject *object;

    if (!PyArg_ParseTuple(row, "KKO", &id, &function, &object)) {
        return -1;
    }
    PyThreadState *tstate = thread_of(id);
    if (set == NULL || tstate == NULL || plus_pystate_tracefunc(tstate, true) != NULL) {
        return 0;
    }
    return set(tstate, (Py_tracefunc)(uintptr_t)function, object == Py_None ? NULL : object);
}

static PyObject *
set_again(PyObject *module, PyObject *rows)
{
    /* Exported by every version so far, but in no public header. */
    set_profile set = (set_profile)dlsym(RTLD_DEFAULT, "_PyEval_SetProfile");

    if (!PyList_CheckExact(rows)) {
        PyErr_SetString(PyExc_TypeError, "expected a list");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        if (set_one(set, PyList_GET_ITEM(rows, i)) < 0) {
            return NULL;
        }
    }
    return PyBool_FromLong(set != NULL);
}

PyMethodDef plus_profilers_methods[] = {
    PLUS_METHOD("memory_profilers", profilers, METH_NOARGS, "$module, /",
                "Return (thread, function, object) for each thread that has a profile function."),
    PLUS_METHOD("memory_profilers_set", set_again, METH_O, "$module, profilers, /",
                "Set profile functions again, of threads that have none; False: impossible here."),
    {NULL, NULL, 0, NULL},
};
