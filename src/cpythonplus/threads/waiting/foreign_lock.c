/* A foreign lock is asked for each of its three methods at each use; threading.Condition asks once, when it is made.
 * If the lock has no _is_owned, acquire() is tried; without the other two, it is released and acquired.  Everything
 * here may run Python code and give up the GIL.
 */
#include "foreign_lock.h"

#include "../state.h"

/* Gets the method `name`, which the lock may lack: 1, 0, or -1 with an exception. */
static int
find_method(PyObject *lock, const char *name, PyObject **method)
{
    *method = PyObject_GetAttrString(lock, name);
    if (*method != NULL) {
        return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

static int
call_for_truth(PyObject *callable, PyObject *argument)
{
    PyObject *result =
        argument != NULL ? PyObject_CallOneArg(callable, argument) : PyObject_CallNoArgs(callable);
    int truth = result != NULL ? PyObject_IsTrue(result) : -1;

    Py_XDECREF(result);
    return truth;
}

int
plus_foreign_call(PyObject *lock, const char *name)
{
    return plus_done(PyObject_CallMethod(lock, name, NULL));
}

/* For a lock that does not say who owns it: if it can be acquired, the caller did not own it. */
static int
foreign_is_owned_by_trying(PyObject *lock)
{
    PyObject *acquire = PyObject_GetAttrString(lock, "acquire");
    int acquired = acquire != NULL ? call_for_truth(acquire, Py_False) : -1;

    Py_XDECREF(acquire);
    if (acquired <= 0) {
        return acquired < 0 ? -1 : 1;
    }
    return plus_foreign_call(lock, "release");
}

int
plus_foreign_is_owned(PyObject *lock)
{
    PyObject *method;
    int found = find_method(lock, "_is_owned", &method);

    if (found <= 0) {
        return found < 0 ? -1 : foreign_is_owned_by_trying(lock);
    }
    found = call_for_truth(method, NULL);
    Py_DECREF(method);
    return found;
}

PyObject *
plus_foreign_release_save(PyObject *lock)
{
    PyObject *method;
    int found = find_method(lock, "_release_save", &method);

    if (found < 0) {
        return NULL;
    }
    if (found == 0) {
        return plus_foreign_call(lock, "release") < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *saved = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    return saved;
}

int
plus_foreign_acquire_restore(PyObject *lock, PyObject *saved)
{
    PyObject *method;
    int found = find_method(lock, "_acquire_restore", &method);

    if (found <= 0) {
        return found < 0 ? -1 : plus_foreign_call(lock, "acquire");
    }
    PyObject *result = PyObject_CallOneArg(method, saved);
    Py_DECREF(method);
    return plus_done(result);
}
