/* What 3.11's frames say about tracing: later versions have events for it (instrumentation.h).
 *
 * All with the GIL held, for frames that a trace function is called with.
 */
#ifndef PLUS_INTERP_FRAME_TRACING_H
#define PLUS_INTERP_FRAME_TRACING_H

#include "../facts/facts.h"

#if PY_VERSION_HEX < 0x030C0000

/* Whether the instruction at `offset`, in bytes, jumps to itself: line events do not tell of that. */
bool
plus_tracing_jumps_to_itself(PyCodeObject *code, int offset);

/* Has the frame report each instruction, unless it does already; and takes that back for it and the frames around. */
void
plus_tracing_ask_for_opcodes(PyFrameObject *frame);
void
plus_tracing_stop_opcodes(PyFrameObject *frame);

/* Whether it reports instructions for plus_tracing_ask_for_opcodes() alone. */
bool
plus_tracing_asked_for_opcodes(const PyFrameObject *frame);

/* Whether it has come to an instruction that does nothing. */
bool
plus_tracing_is_at_nop(PyFrameObject *frame);

#endif

#endif
