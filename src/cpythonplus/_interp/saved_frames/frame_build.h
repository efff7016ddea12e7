/* Captured frames (frame_capture.h), checked and laid out as the interpreter's own.
 *
 * All with the GIL held, for whom PLUS_FACT_FRAMES, _OPERANDS and _FRAME_BUILDING hold.
 */
#ifndef PLUS_INTERP_FRAME_BUILD_H
#define PLUS_INTERP_FRAME_BUILD_H

#include "../frames/stack_depth.h"

struct _PyInterpreterFrame;

/* One captured frame; all is borrowed. */
struct plus_captured {
    PyObject *owner, *function; /* the same, but of a generator */
    PyObject *kinds, *values, *handled;
    PyCodeObject *code;
    int offset;
    const struct plus_call_site
        *site; /* NULL: it goes on with the instruction at `offset` itself */
};

static inline bool
plus_is_generator(PyObject *op)
{
    return PyGen_CheckExact(op) || PyCoro_CheckExact(op);
}

/* The same with the code that each has now, to go on with that; or NULL with ValueError that says what does not fit.  Then
 * nothing has been changed; else the generators among them are taken for being executed. */
PyObject *
plus_frames_adopt(PyObject *frames);

/* What was adopted; or NULL, with `error`: a function has other code now. */
PyObject *
plus_frames_as_captured(PyObject *frames, PyObject *error);

/* Of adopted frames that will not go on: the generators end. */
void
plus_frames_abandon(PyObject *frames);

/* Of an adopted one. */
struct plus_captured
plus_frames_captured(PyObject *frames, Py_ssize_t index);

/* Bytes that a frame takes in the room for frames; 0: a generator's. */
size_t
plus_frame_bytes(const struct plus_captured *item);

/* What the interpreter would have at `room` for a call of the function, when that had this code, that has not begun; nothing is
 * below it. */
struct _PyInterpreterFrame *
plus_frame_begin(char *room, PyObject *function, PyCodeObject *code);

/* The same, with what was captured; of a generator its own, which must not be executed.  It stands behind its call, or
 * before the instruction that comes next. */
struct _PyInterpreterFrame *
plus_frame_build(const struct plus_captured *item, char *room);

/* Where the frame goes on: behind the instruction, whose result is pushed; `at_end`: where a `for` or `yield from` goes on whose
 * generator has returned. */
void
plus_frame_go_behind(struct _PyInterpreterFrame *frame, const struct plus_captured *item,
                     bool at_end);

/* code.replace(**names), new; takes `names`, which may be NULL with an exception. */
PyObject *
plus_code_replace(PyObject *code, PyObject *names);

/* The unit of an instruction, or of the prefixes that belong to it. */
int
plus_first_unit(PyCodeObject *code, int unit);

#if PY_VERSION_HEX >= 0x030C0000
/* An exception comes in place of the instruction that would be next. */
void
plus_frame_raise_at(struct _PyInterpreterFrame *frame, const struct plus_captured *item);
#else
/* The instruction itself is executed (once more). */
void
plus_frame_go_before(struct _PyInterpreterFrame *frame, const struct plus_captured *item);
#endif

/* Lets go of what one that was built refers to. */
void
plus_frame_drop(struct _PyInterpreterFrame *frame);

struct _PyInterpreterFrame *
plus_generator_frame(PyObject *generator);

/* A generator or coroutine of the function that has not begun, its arguments empty; NULL with an exception. */
PyObject *
plus_generator_make(PyObject *function);

/* Puts it where plus_generator_capture() found one.  `captured`: what that gave, or None.  0, or -1 with ValueError. */
int
plus_generator_restore(PyObject *generator, PyObject *captured);

#endif
