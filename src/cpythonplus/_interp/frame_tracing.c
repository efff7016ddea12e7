#define Py_BUILD_CORE 1
#include "frame_tracing.h"

#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <opcode.h>

/* What f_trace_opcodes is where the program's own trace function has not set it. */
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
    if (!frame->f_trace_opcodes) {
        frame->f_trace_opcodes = OPCODES_FOR_US;
    }
}

bool
plus_tracing_asked_for_opcodes(const PyFrameObject *frame)
{
    return frame->f_trace_opcodes == OPCODES_FOR_US;
}

void
plus_tracing_stop_opcodes(PyFrameObject *frame)
{
    for (_PyInterpreterFrame *it = frame->f_frame; it != NULL; it = it->previous) {
        if (it->frame_obj != NULL && plus_tracing_asked_for_opcodes(it->frame_obj)) {
            it->frame_obj->f_trace_opcodes = 0;
        }
    }
}

bool
plus_tracing_is_at_nop(PyFrameObject *frame)
{
    int offset = PyFrame_GetLasti(frame);

    return offset >= 0 && _Py_OPCODE(instruction(frame->f_frame->f_code, offset)) == NOP;
}
#endif
