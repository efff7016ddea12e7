/* Whether a count of references that is set as the interpreter sets it is left alone.
 *
 * What is written is a word of the object, so the order matters: that it is the count is seen first, by letting the
 * interpreter's own functions change it.  Then an object is made immortal that was made for it, and all four ways in
 * which a count changes (the macros, which are compiled into this extension, and the functions, which the interpreter
 * was compiled with) must leave it.
 *
 *     3.12, 3.13    the low half of the count is all ones: an increment would overflow, and is not stored
 *     3.14, 3.15    its two top bits; and a flag, for which stack references ask
 *
 * The probe's object is leaked.  It could be freed only by taking the count back, as plus_immortal_undo() does, which
 * would be a second thing to prove.
 *
 * None is looked at as well, whose count is not exactly what it was: extensions that were compiled before 3.12 count
 * it. */
#include "immortal.h"

#include "../facts/probes.h"

#ifdef PLUS_HAS_IMMORTAL

/* Before anything is written: the count is where it is known to be. */
static bool
count_is_there(PyObject *op)
{
    const PyObject *at = PLUS_AT(PLUS_FACT_IMMORTAL, op);
    Py_ssize_t before = Py_REFCNT(op);
    bool there = at->ob_refcnt == before;

    Py_IncRef(op); /* the function, which the interpreter has compiled */
    there &= at->ob_refcnt == before + 1;
    Py_DecRef(op);
    return there && at->ob_refcnt == before;
}

static bool
counts_stay(PyObject *op)
{
    Py_ssize_t before = Py_REFCNT(op);

    Py_INCREF(op);
    Py_IncRef(op);
    Py_DecRef(op);
    Py_DECREF(op);
    Py_DECREF(op);
    return plus_immortal_is(op) && Py_REFCNT(op) == before;
}

const char *
plus_probe_immortal(void)
{
    /* Not exactly, see above. */
    if (Py_REFCNT(Py_None) < (Py_ssize_t)(PLUS_IMMORTAL_COUNT / 2)) {
        return "None is not immortal";
    }
    PyObject *probe = PyBytes_FromString("cpythonplus"); /* leaked, as it has to be */
    if (probe == NULL) {
        return "out of memory";
    }
    if (!count_is_there(probe)) {
        return "an object's references are not counted where expected";
    }
    if (plus_immortal_is(probe)) {
        return "a new object is immortal";
    }
    plus_immortal_make(probe);
    return counts_stay(probe) ? NULL : "an object that was made immortal is still counted";
}

#endif

const char *
plus_immortal_refusal(void)
{
    const char *refusal = plus_fact_refusal(PLUS_FACT_IMMORTAL);

#ifndef PLUS_HAS_IMMORTAL
    if (refusal == NULL) {
        return "immortal objects require CPython 3.12 or later";
    }
#endif
    return refusal;
}
