/* An exception in a callback of the collector has nobody to go to: the collector runs wherever memory is asked for.
 *
 *     collection -> guarded(*args) -> callable(*args)
 *         returned, RecursionError, MemoryError    done; the latter two are the callback's own want, and dropped
 *         anything else                            kept if it is the first, and the callable is called again
 *     after it is done, or TRIES calls, what was kept
 *         on the main thread                       is raised by a pending call, behind the collection
 *         elsewhere, or no pending call is left    goes to the collector, which prints it
 *
 * What is kept is a signal handler's: these run on the main thread, between any two instructions.  So the callback has to
 * be called again, for it may have been interrupted half way; and the exception must come out, as it is
 * KeyboardInterrupt or a time-out.  A handler may raise each time: hence the end to it.
 *
 * All with the GIL held.  The reference to the exception goes to the pending call, which gives it up.  The recursion
 * limit is raised for the call and put back, unless a destructor has set another one meanwhile.
 *
 * Rejected: to block signals around the callback (Python's handlers do not run in the signal, but when the interpreter
 * finds time for them), and PyThreadState_SetAsyncExc (it takes a class, so the exception's arguments would be lost). */
#define _GNU_SOURCE
#include "guard.h"

#include "../../_base/raise.h"

#define ROOM 400 /* calls */
#define TRIES 4  /* signals may come as quickly as they are handled */

/* A collection may come where the program has no calls left: room for the callback's own. */
static PyObject *
call_with_room(PyObject *callable, PyObject *const *args, Py_ssize_t count)
{
    int limit = Py_GetRecursionLimit();

    Py_SetRecursionLimit(limit + ROOM);
    PyObject *result = PyObject_Vectorcall(callable, args, (size_t)count, NULL);
    /* A destructor may have set its own. */
    if (Py_GetRecursionLimit() == limit + ROOM) {
        Py_SetRecursionLimit(limit);
    }
    return result;
}

/* The callback's own want of room or memory is not the program's. */
static bool
is_own(PyObject *error)
{
    return PyErr_GivenExceptionMatches(error, PyExc_RecursionError) ||
           PyErr_GivenExceptionMatches(error, PyExc_MemoryError);
}

/* Calls again what a signal handler interrupted, but not for ever.  Only the first exception counts: a time-out that
 * is due again and again is one. */
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
    if (first == NULL || plus_raise_soon(first)) { /* behind the collection */
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
