/* The tracing fields of 3.11's frame objects; later versions have events instead (instrumentation.h).
 *
 * GIL held; the frame must be one that a trace function was called with.
 */
#pragma once

#include "../facts/facts.h"

#if PY_VERSION_HEX < 0x030C0000

/* True if the instruction at byte `offset` jumps to itself, which line events do not report. */
bool
plus_tracing_jumps_to_itself(PyCodeObject *code, int offset);

/* ask: make the frame report each instruction, unless it already does. stop: withdraw that for the frame and the frames
 * around it. */
void
plus_tracing_ask_for_opcodes(PyFrameObject *frame);
void
plus_tracing_stop_opcodes(PyFrameObject *frame);

/* True if the frame reports instructions only because of plus_tracing_ask_for_opcodes(). */
bool
plus_tracing_asked_for_opcodes(const PyFrameObject *frame);

/* True if the frame's current instruction is a NOP. */
bool
plus_tracing_is_at_nop(PyFrameObject *frame);

#endif
