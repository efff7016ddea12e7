/* Objects whose references are not counted: from 3.12 on, and not on a free-threaded build, which counts differently.
 *
 * Callers hold the GIL and have checked that plus_immortal_refusal() is NULL.
 */
#pragma once

#include "../facts/facts.h"

#if PY_VERSION_HEX >= 0x030C0000 && !defined(Py_GIL_DISABLED)
#define PLUS_HAS_IMMORTAL 1
#endif

/* NULL, or the reason why no object can be made immortal: PLUS_FACT_IMMORTAL, or a version or build without it. */
const char *
plus_immortal_refusal(void);

#ifdef PLUS_HAS_IMMORTAL

#if PY_VERSION_HEX >= 0x030E0000
/* The interpreter's stack references read this flag and not the count. */
#define PLUS_IMMORTAL_FLAG 1u
#define PLUS_IMMORTAL_COUNT (UINT32_C(3) << 30)
#else
/* The low half of the count has exactly this value: an increment would overflow, and is not stored. */
#define PLUS_IMMORTAL_COUNT UINT32_MAX
#endif

static inline bool
plus_immortal_is(PyObject *op)
{
#if PY_VERSION_HEX >= 0x030E0000
    op = PLUS_AT(PLUS_FACT_IMMORTAL, op);
    return _Py_IsImmortal(op) && (op->ob_flags & PLUS_IMMORTAL_FLAG) != 0;
#else
    return (uint32_t)PLUS_AT(PLUS_FACT_IMMORTAL, op)->ob_refcnt == PLUS_IMMORTAL_COUNT;
#endif
}

/* A debug build of the interpreter asserts that a string is mortal unless its interned state says otherwise
 * (unicode_check_consistency), and that a string is mortal when it is interned.  So strings that are not interned stay
 * mortal there, and the state of the others is changed.  Other builds read the state at two places: when a string's
 * count becomes zero, and when the interpreter ends and frees the interned strings.  There the state must be that of a
 * mortal string: immortal objects still refer to it. */
static inline bool
plus_immortal_may_be(PyObject *op)
{
#ifdef Py_DEBUG
    return !PyUnicode_Check(op) || PyUnicode_CHECK_INTERNED(op) != SSTATE_NOT_INTERNED;
#else
    return true;
#endif
}

static inline void
plus_immortal_set_interned_state(PyObject *op, unsigned state)
{
#ifdef Py_DEBUG
    if (PyUnicode_Check(op)) {
        ((PyASCIIObject *)op)->state.interned = state;
    }
#else
    (void)op, (void)state;
#endif
}

static inline void
plus_immortal_make(PyObject *op)
{
    PyObject *at = PLUS_AT(PLUS_FACT_IMMORTAL, op);

    at->ob_refcnt = PLUS_IMMORTAL_COUNT;
#if PY_VERSION_HEX >= 0x030E0000
    at->ob_flags |= PLUS_IMMORTAL_FLAG;
#endif
    plus_immortal_set_interned_state(op, SSTATE_INTERNED_IMMORTAL);
}

/* Make the object mortal again, with the reference count that it had before. */
static inline void
plus_immortal_undo(PyObject *op, Py_ssize_t count)
{
    PyObject *at = PLUS_AT(PLUS_FACT_IMMORTAL, op);

    at->ob_refcnt = count;
#if PY_VERSION_HEX >= 0x030E0000
    at->ob_flags &= (uint16_t)~PLUS_IMMORTAL_FLAG;
#endif
    plus_immortal_set_interned_state(op, SSTATE_INTERNED_MORTAL);
}

#endif
