/* The proof that a reference count with the interpreter's immortal value is left alone.
 *
 * The proof writes a word of an object, so the order matters: first the interpreter's own functions change the count,
 * which shows that the word is the count.  Then a new object is made immortal, and all four ways of changing a count
 * (the macros, compiled into this extension, and the functions, compiled into the interpreter) must leave it unchanged.
 *
 *     3.12, 3.13    the low half of the count is all ones: an increment would overflow, and is not stored
 *     3.14, 3.15    its two top bits are set; and a flag, which stack references read
 *
 * The probe's object is leaked.  Freeing it would mean restoring the count, as plus_immortal_undo() does, which would
 * be a second thing to prove.
 *
 * None is checked too, but not for the exact count: extensions that were compiled before 3.12 change it. */
#include "immortal.h"

#include "../facts/probes.h"

#ifdef PLUS_HAS_IMMORTAL

/* True if the reference count is at its expected place; nothing is written. */
static bool
count_is_there(PyObject *op)
{
    const PyObject *at = PLUS_AT(PLUS_FACT_IMMORTAL, op);
    Py_ssize_t before = Py_REFCNT(op);
    bool there = at->ob_refcnt == before;

    Py_IncRef(op); /* the function, compiled into the interpreter */
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
    /* Not compared with PLUS_IMMORTAL_COUNT itself, see above. */
    if (Py_REFCNT(Py_None) < (Py_ssize_t)(PLUS_IMMORTAL_COUNT / 2)) {
        return "None is not immortal";
    }
    PyObject *probe = PyBytes_FromString("cpythonplus"); /* leaked, see above */
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
