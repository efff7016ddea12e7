/* Captured frames (frame_capture.h), checked and laid out as the interpreter's own.
 *
 * Callers hold the GIL and have proven PLUS_FACT_FRAMES, _OPERANDS and _FRAME_BUILDING.
 */
#pragma once

#include "../frames/stack_depth.h"

struct _PyInterpreterFrame;

/* One captured frame; every field is borrowed. */
struct plus_captured {
    PyObject *owner, *function; /* they differ only if the owner is a generator */
    PyObject *kinds, *values, *handled;
    PyCodeObject *code;
    int offset;
    const struct plus_call_site
        *site; /* NULL if the frame goes on with the instruction at `offset` itself */
};

static inline bool
plus_is_generator(PyObject *op)
{
    return PyGen_CheckExact(op) || PyCoro_CheckExact(op);
}

/* A new tuple of the frames, each with the present code of its function, to go on with that code.  If something does
 * not fit: NULL with a ValueError that says what, and nothing has been changed.  On success the generators of the chain
 * are marked as being executed. */
PyObject *
plus_frames_adopt(PyObject *frames);

/* The captured form of adopted frames; NULL with `error` if a function has got other code since. */
PyObject *
plus_frames_as_captured(PyObject *frames, PyObject *error);

/* Note that the object's finalizer was called, so that neither the collector nor a deallocation calls it; or that it is
 * to be called (again).  Without a GIL: nothing. */
void
plus_set_finalised(PyObject *op, bool done);

/* End the generators of adopted frames that will not go on. */
void
plus_frames_abandon(PyObject *frames);

/* One frame of an adopted chain. */
struct plus_captured
plus_frames_captured(PyObject *frames, Py_ssize_t index);

/* The bytes that the frame takes in the room for frames; 0 for a generator, which contains its frame. */
size_t
plus_frame_bytes(const struct plus_captured *item);

/* Build at `room` the frame of a call of the function that has not begun, as the interpreter would if the function had
 * this code.  The new frame has no frame below it. */
struct _PyInterpreterFrame *
plus_frame_begin(char *room, PyObject *function, PyCodeObject *code);

/* Build at `room` the frame of `item` with the captured state.  A generator's own frame is used, and the generator must
 * not be executing.  The frame is then behind its call, or before the next instruction. */
struct _PyInterpreterFrame *
plus_frame_build(const struct plus_captured *item, char *room);

/* Let the frame go on behind the instruction, whose result is pushed.  With `at_end` it goes on behind the end of the
 * `for` or `yield from`, whose generator has returned. */
void
plus_frame_go_behind(struct _PyInterpreterFrame *frame, const struct plus_captured *item,
                     bool at_end);

/* code.replace(**names), new; takes `names`, which may be NULL with an exception. */
PyObject *
plus_code_replace(PyObject *code, PyObject *names);

/* The index of the instruction's first code unit, including its EXTENDED_ARG prefixes. */
int
plus_first_unit(PyCodeObject *code, int unit);

#if PY_VERSION_HEX >= 0x030C0000
/* Make the frame raise in place of its next instruction. */
void
plus_frame_raise_at(struct _PyInterpreterFrame *frame, const struct plus_captured *item);
#else
/* Make the frame execute its instruction again. */
void
plus_frame_go_before(struct _PyInterpreterFrame *frame, const struct plus_captured *item);
#endif

/* Drop every reference of a built frame. */
void
plus_frame_drop(struct _PyInterpreterFrame *frame);

struct _PyInterpreterFrame *
plus_generator_frame(PyObject *generator);

/* A new generator or coroutine of the function that has not begun, with placeholders as arguments; NULL with an
 * exception. */
PyObject *
plus_generator_make(PyObject *function);

/* Put the generator into the state that plus_generator_capture() gave as `captured`; None means ended. 0, or -1 with
 * ValueError. */
int
plus_generator_restore(PyObject *generator, PyObject *captured);
