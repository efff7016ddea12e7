/* The layout of interpreter frames, which has changed in each version.
 *
 * Include this first, and only in files that read frames: it includes CPython's internal headers for their structures
 * and inline functions; the functions that they declare are not exported. */
#pragma once

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "../facts/facts.h"

#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#else
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif

#if PY_VERSION_HEX >= 0x030E0000
#define _PyFrame_GetGenerator _PyGen_GetGeneratorFromFrame /* its earlier name */
#endif
#ifndef FRAME_STATE_FINISHED /* 3.11 has no such macro */
#define FRAME_STATE_FINISHED(state) ((state) >= FRAME_COMPLETED)
#endif

/* The address to read a frame at; all functions that take a `const` frame expect it. */
static inline struct _PyInterpreterFrame *
plus_pyframe_at(struct _PyInterpreterFrame *frame)
{
    return PLUS_AT(PLUS_FACT_FRAMES, frame);
}

/* The innermost frame of a thread, NULL if it runs no Python. */
static inline struct _PyInterpreterFrame *
plus_pyframe_top(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PLUS_AT(PLUS_FACT_FRAMES, tstate)->current_frame;
#else
    _PyCFrame *cframe = PLUS_AT(PLUS_FACT_FRAMES, tstate)->cframe;

    return cframe != NULL ? cframe->current_frame : NULL;
#endif
}

/* False for the frame of the interpreter that C code leaves in the chain when it calls Python code (from 3.12 on). */
static inline bool
plus_pyframe_is_python(const struct _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return frame->owner < FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->owner != FRAME_OWNED_BY_CSTACK;
#else
    return true; /* 3.11 marks the called frame instead (is_entry) */
#endif
}

/* The object that the frame executes, borrowed; NULL if there is none. */
static inline PyObject *
plus_pyframe_executable(const struct _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    return frame->f_executable;
#else
    return (PyObject *)frame->f_code;
#endif
}

/* Borrowed; NULL if the frame executes another object. */
static inline PyCodeObject *
plus_pyframe_code(const struct _PyInterpreterFrame *frame)
{
    PyObject *code = plus_pyframe_executable(frame);

    return plus_pyframe_is_python(frame) && code != NULL && PyCode_Check(code)
               ? (PyCodeObject *)code
               : NULL;
}

/* The function that the frame executes, or the generator's; borrowed. */
static inline PyObject *
plus_pyframe_function(const struct _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->f_funcobj;
#else
    return (PyObject *)frame->f_func;
#endif
}

/* False for a frame that is about to begin: it may lack some of its variables. */
static inline bool
plus_pyframe_has_begun(struct _PyInterpreterFrame *frame)
{
    return plus_pyframe_code(frame) != NULL && !_PyFrame_IsIncomplete(frame);
}

/* The variable at `index` of co_localsplusnames, a cell as the cell; borrowed, NULL if unbound. */
static inline PyObject *
plus_pyframe_variable(const struct _PyInterpreterFrame *frame, int index)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef reference = frame->localsplus[index];

    return PyStackRef_IsNull(reference) ? NULL : PyStackRef_AsPyObjectBorrow(reference);
#else
    return frame->localsplus[index];
#endif
}

/* The frame of a frame object. */
static inline struct _PyInterpreterFrame *
plus_pyframe_of(PyFrameObject *object)
{
    return plus_pyframe_at(object->f_frame);
}
