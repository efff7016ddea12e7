/* The tracing fields of 3.11's frame objects.
 *
 * run_for() counts events of a trace function on 3.11.  A jump back to an earlier line, or to the beginning of the same
 * one, reports a line; an instruction that jumps to itself (`while True: pass`) reports none.  In that case the frame
 * is asked to report each instruction.
 *
 *     f_trace_opcodes    0   instructions are not reported
 *                        1   the program's own trace function has asked for them
 *                        2   we have: the interpreter only compares with 0
 *
 * So a request of the program is not withdrawn, and events that are reported for us alone are kept from the program's
 * trace function (tasklets/tracing/interrupts.c). plus_tracing_stop_opcodes() also visits the outer frames, since the
 * request may have been made for one of them.
 *
 * From 3.12 on there are events for jumps (instrumentation.h), and this file is empty. */
#define Py_BUILD_CORE 1
#include "frame_tracing.h"

#include "../facts/probe_call.h"
#include "../facts/probes.h"

#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <opcode.h>

/* Our value of f_trace_opcodes; the program's own request sets it to 1. */
#define OPCODES_FOR_US 2

static _Py_CODEUNIT
instruction(PyCodeObject *code, int offset)
{
    return _PyCode_CODE(code)[offset / (int)sizeof(_Py_CODEUNIT)];
}

bool
plus_tracing_jumps_to_itself(PyCodeObject *code, int offset)
{
    if (offset < 0) {
        return false;
    }
    int opcode = _Py_OPCODE(instruction(code, offset));

    return (opcode == JUMP_BACKWARD || opcode == JUMP_BACKWARD_QUICK) &&
           _Py_OPARG(instruction(code, offset)) == 1;
}

void
plus_tracing_ask_for_opcodes(PyFrameObject *frame)
{
    if (!PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes) {
        PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes = OPCODES_FOR_US;
    }
}

bool
plus_tracing_asked_for_opcodes(const PyFrameObject *frame)
{
    return PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes == OPCODES_FOR_US;
}

void
plus_tracing_stop_opcodes(PyFrameObject *frame)
{
    for (_PyInterpreterFrame *it = frame->f_frame; it != NULL; it = it->previous) {
        if (it->frame_obj != NULL && plus_tracing_asked_for_opcodes(it->frame_obj)) {
            PLUS_AT(PLUS_FACT_FRAME_TRACING, it->frame_obj)->f_trace_opcodes = 0;
        }
    }
}

bool
plus_tracing_is_at_nop(PyFrameObject *frame)
{
    int offset = PyFrame_GetLasti(frame);

    return offset >= 0 && _Py_OPCODE(instruction(frame->f_frame->f_code, offset)) == NOP;
}

static bool
says_opcodes(PyObject *frame, bool expected)
{
    PyObject *value = PyObject_GetAttrString(frame, "f_trace_opcodes");
    bool same = value == (expected ? Py_True : Py_False);

    Py_XDECREF(value);
    return same;
}

static void
look_at_frame(const struct plus_probe_call *call, void *arg)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    bool *fits = arg;

    if (frame == NULL) {
        PyErr_NoMemory();
        return;
    }
    /* Compare with the Python attribute before the field is written. */
    *fits = PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes == 0 &&
            says_opcodes((PyObject *)frame, false) &&
            PyObject_SetAttrString((PyObject *)frame, "f_trace_opcodes", Py_True) == 0 &&
            PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes == 1 &&
            PyObject_SetAttrString((PyObject *)frame, "f_trace_opcodes", Py_False) == 0 &&
            PLUS_AT(PLUS_FACT_FRAME_TRACING, frame)->f_trace_opcodes == 0;
    if (*fits) {
        plus_tracing_ask_for_opcodes(frame);
        *fits = plus_tracing_asked_for_opcodes(frame) && says_opcodes((PyObject *)frame, true);
        plus_tracing_stop_opcodes(frame);
        *fits &= says_opcodes((PyObject *)frame, false);
    }
    Py_DECREF(frame);
}

const char *
plus_probe_frame_tracing(void)
{
    const char *refusal = plus_fact_refusal(PLUS_FACT_FRAMES);
    bool fits = false;

    if (refusal != NULL) {
        return refusal;
    }
    return plus_probe_call(look_at_frame, &fits) == 0 && fits
               ? NULL
               : "a frame object does not note tracing as expected";
}

#endif
