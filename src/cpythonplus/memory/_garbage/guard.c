/* An exception in a callback of the collector has no caller to go to: the collector runs wherever memory is allocated.
 *
 *     collection -> guarded(*args) -> callable(*args)
 *         returned, RecursionError, MemoryError    done; the latter two are about the callback itself, and dropped
 *         any other exception                      kept if it is the first, and the callable is called again
 *     after it is done, or after TRIES calls, the kept exception
 *         on the main thread                       is raised by a pending call, after the collection
 *         elsewhere, or no pending call is left    goes to the collector, which prints it
 *
 * A kept exception comes from a signal handler: handlers run on the main thread, between any two instructions.  The
 * callback may have been interrupted half way, so it is called again.  The exception must be raised, because it is
 * KeyboardInterrupt or a time-out.  A handler may raise each time, hence the limit TRIES.
 *
 * The GIL is held throughout.  The pending call takes over the reference to the exception.  The recursion limit is
 * raised for the call and restored, unless a destructor has set another one meanwhile.
 *
 * Rejected: blocking signals around the callback (Python's handlers do not run in the signal, but later in the
 * interpreter loop), and PyThreadState_SetAsyncExc (it takes a class, so the exception's arguments would be lost). */
#define _GNU_SOURCE
#include "guard.h"

#include "../../_base/raise.h"

#define ROOM 400 /* calls */
#define TRIES 4  /* limit of calls: a signal handler may interrupt each of them */

/* A collection may run when the recursion limit is nearly reached: add room for the callback's own calls. */
static PyObject *
call_with_room(PyObject *callable, PyObject *const *args, Py_ssize_t count)
{
    int limit = Py_GetRecursionLimit();

    Py_SetRecursionLimit(limit + ROOM);
    PyObject *result = PyObject_Vectorcall(callable, args, (size_t)count, NULL);
    /* A destructor may have set another limit. */
    if (Py_GetRecursionLimit() == limit + ROOM) {
        Py_SetRecursionLimit(limit);
    }
    return result;
}

/* True for RecursionError and MemoryError of the callback itself, which are not the program's. */
static bool
is_own(PyObject *error)
{
    return PyErr_GivenExceptionMatches(error, PyExc_RecursionError) ||
           PyErr_GivenExceptionMatches(error, PyExc_MemoryError);
}

/* Calls again if a signal handler interrupted the call, at most TRIES times.  Only the first exception counts: a
 * time-out that is due repeatedly is one. */
static PyObject *
call_guarded(PyObject *callable, PyObject *const *args, Py_ssize_t count)
{
    PyObject *first = NULL;

    for (int i = 0; i < TRIES; i++) {
        PyObject *result = call_with_room(callable, args, count);
        PyObject *error = result == NULL ? plus_compat_take_exception() : NULL;
        bool done = result != NULL || is_own(error);

        Py_XDECREF(result);
        if (!done && first == NULL) {
            first = Py_NewRef(error);
        }
        Py_XDECREF(error);
        if (done) {
            break;
        }
    }
    if (first == NULL || plus_raise_soon(first)) { /* after the collection */
        Py_RETURN_NONE;
    }
    plus_raise_again(first);
    return NULL;
}

static PyMethodDef guarded = {
    "guarded", (PyCFunction)(void (*)(void))call_guarded, METH_FASTCALL,
    PyDoc_STR("guarded($self, /, *args)\n--\n\nCall; raise what it raises behind the collection.")};

PyObject *
plus_guarded(PyObject *callable)
{
    return PyCFunction_NewEx(&guarded, callable, NULL);
}
