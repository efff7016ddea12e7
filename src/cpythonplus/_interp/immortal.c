#include "immortal.h"

#ifdef PLUS_HAS_IMMORTAL

static bool
counts_stay(PyObject *op)
{
    Py_ssize_t before = Py_REFCNT(op);

    Py_INCREF(op);
    Py_INCREF(op);
    Py_DECREF(op);
    Py_DECREF(op);
    Py_DECREF(op);
    return plus_immortal_is(op) && Py_REFCNT(op) == before;
}

const char *
plus_immortal_refusal(void)
{
    static PyObject *probe; /* leaked, as it has to be */

    /* Not exactly: extensions that were compiled before 3.12 count references to it. */
    if (Py_REFCNT(Py_None) < (Py_ssize_t)(PLUS_IMMORTAL_COUNT / 2)) {
        return "None is not immortal";
    }
    if (probe == NULL) {
        probe = PyBytes_FromString("cpythonplus");
        if (probe == NULL) {
            PyErr_Clear();
            return "out of memory";
        }
        if (plus_immortal_is(probe)) {
            return "a new object is immortal";
        }
        plus_immortal_make(probe);
    }
    return counts_stay(probe) ? NULL : "an object that was made immortal is still counted";
}

#else

const char *
plus_immortal_refusal(void)
{
#ifdef Py_GIL_DISABLED
    return PLUS_FREE_THREADED;
#else
    return "immortal objects require CPython 3.12 or later";
#endif
}

#endif
