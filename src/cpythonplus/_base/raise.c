/* The exceptions that are raised from C, in three kinds.
 *
 *   a reason    UnsupportedPlatform(reason): the platform differs.  Mechanism writes the line, binding raises it.
 *   a call      OSError with the name of the call in front ("pthread_create failed: ...").  Mechanism returns -errno.
 *   a class     that the Python half defines: found by import when it is raised, so that no reference is kept.
 *
 * Code that has to run something else while an exception is set takes the exception (plus_raised_take), and puts it
 * back afterwards.  An exception that cannot be raised at its place is raised soon: by a pending call, in the main
 * thread, between any two instructions.  That may be refused (the interpreter limits their number): the caller decides
 * what to do then.
 */
#include "raise.h"

#include <sys/syscall.h>
#include <unistd.h>

PyObject *
plus_import_from(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module != NULL ? PyObject_GetAttrString(module, name) : NULL;

    Py_XDECREF(module);
    return found;
}

PyObject *
plus_call_from(const char *module_name, const char *name, const char *format, ...)
{
    PyObject *function = plus_import_from(module_name, name);
    va_list values;

    va_start(values, format);
    PyObject *arguments = function != NULL ? Py_VaBuildValue(format, values) : NULL;
    va_end(values);
    PyObject *result = arguments != NULL ? PyObject_CallObject(function, arguments) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(function);
    return result;
}

int
plus_raise_from(const char *module_name, const char *name)
{
    PyObject *type = plus_import_from(module_name, name);

    if (type != NULL) {
        PyErr_SetNone(type);
        Py_DECREF(type);
    }
    return -1;
}

PyObject *
plus_raise_unsupported(const char *reason)
{
    PyObject *type = plus_import_from("cpythonplus._base.errors", "UnsupportedPlatform");

    if (type != NULL) {
        PyErr_SetString(type, reason);
        Py_DECREF(type);
    }
    return NULL;
}

bool
plus_refuses_free_threaded(void)
{
#ifdef Py_GIL_DISABLED
    plus_raise_unsupported(PLUS_FREE_THREADED);
    return true;
#else
    return false;
#endif
}

void
plus_raise_again(PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception,
                  PyException_GetTraceback(exception));
#endif
}

PyObject *
plus_take_exception_after(PyObject *earlier)
{
    PyObject *exception = plus_compat_take_exception();

    if (earlier != NULL && earlier != exception) {
        PyException_SetContext(exception, earlier);
    }
    else {
        Py_XDECREF(earlier);
    }
    return exception;
}

/* The pending call. */
static int
raise_now(void *exception)
{
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return -1;
}

/* Pending calls are made by the thread that started the process, or that was alone after its fork; signal handlers run
 * there too.  The kernel gives that thread the process's number. */
bool
plus_raise_soon(PyObject *exception)
{
    return syscall(SYS_gettid) == getpid() && Py_AddPendingCall(raise_now, exception) == 0;
}

void
plus_raise_soon_or_print(PyObject *exception)
{
    if (!plus_raise_soon(exception)) {
        plus_raise_again(exception);
        PyErr_WriteUnraisable(NULL);
    }
}

PyObject *
plus_raise_errno(const char *call, int error)
{
    PyObject *arguments = Py_BuildValue("(is)", error, strerror(error));

    if (arguments == NULL) {
        return NULL;
    }
    PyObject *exception = PyObject_CallObject(PyExc_OSError, arguments);
    Py_DECREF(arguments);
    if (exception != NULL) {
        PyErr_Format(PyExc_OSError, "%s failed: %S", call, exception);
        Py_DECREF(exception);
    }
    return NULL;
}
