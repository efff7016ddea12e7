/* Reading the interpreter frames of a parked tasklet: what they own, where they stand, what they
 * forbid.
 *
 * The chain starts at what the thread state's current frame was when the tasklet was parked and
 * goes out through `previous`.  It ends at NULL or, from 3.15 on, at a thread state's base frame.
 *
 * Called with the GIL held, for a tasklet that does not run.  Nothing here switches, and nothing
 * but plus_frames_object() makes an object that the garbage collector tracks.
 */
#ifndef PLUS_INTERP_FRAMES_H
#define PLUS_INTERP_FRAMES_H

#include "pystate.h"

#include <stddef.h>

struct _PyInterpreterFrame;

struct plus_frames {
    struct _PyInterpreterFrame *top; /* NULL: no frames */
    /* Where a cold tasklet's stack is kept; `previous` and the like still hold the old addresses. */
    struct plus_moved moved;
    /* The tasklet was not parked by a call that Python code made (schedule(), a channel's send()
     * and so on), but from a finaliser, or from a callback of the interpreter such as a trace
     * function in C.  Up to 3.13 the operand stack of the innermost frame may then hold references
     * that are gone. */
    bool uncalled;
    /* In a callback of sys.monitoring, between two instructions of the innermost frame (3.12 and later). */
    bool between;
};

/* Where a frame of the chain can be read. */
struct _PyInterpreterFrame *
plus_frames_located(const struct plus_frames *frames, struct _PyInterpreterFrame *frame);

/* The frames that a thread is in now, itself or while it waits for the GIL: they stay as they are until the
 * caller gives the GIL up or returns to Python code. */
struct plus_frames
plus_frames_of_thread(PyThreadState *tstate);

/* tp_traverse's part: visits each reference that the frames own, once: code, function, locals
 * mapping, frame object, local variables and cells, and what is on the operand stack.  0, or what
 * `visit` returned.
 *
 * Rather too few than one that is not owned, as that would corrupt the heap; what is left out looks
 * referenced from outside, so that a cycle through it is not collected.  Left out are
 * - frames of generators and coroutines: these visit them.  (Up to 3.13 they visit no variables
 *   while they run.  Visiting these here would hand them to the wrong owner: a generator can
 *   outlive the tasklet.)
 * - what C functions on the way hold, such as the tuple of arguments that a constructor gets.
 * - up to 3.13, operands of a frame that is inside C, unless it is known that the instruction in progress is a call,
 *   or a `for` that asks its iterator.  What lies below that call's own operands is visited.  These are let go one after
 *   the other when the call is over, and what that runs (finalisers, callbacks of weak references, generators that are
 *   closed) finds some of them freed.  The innermost frame is taken to be inside its call, as long as `uncalled` does
 *   not say otherwise.  Others are when one of the operands is the function that runs, or that is __init__, __new__,
 *   __call__ or __next__ of what is called; then those operands are visited that what runs holds, too, so that
 *   nothing which may be freed is looked at.  None is when there is a frame object: a signal handler gets one, and
 *   an exception or a trace function leaves one. */
int
plus_frames_visit(const struct plus_frames *frames, visitproc visit, void *arg);

/* Calls `each` for each frame, innermost first, generators' too, with its code (borrowed) and the
 * offset of its last instruction in bytes, until that returns something else than 0, which is
 * returned; else 0.  Frames that have not begun yet, and those of the interpreter itself, are left
 * out. */
int
plus_frames_each(const struct plus_frames *frames, int (*each)(PyCodeObject *, int, void *),
                 void *arg);

/* Memory of this size, zeroed, made into a frame that has not begun and owns nothing: `code` in front of
 * `previous`.  For code that only walks the chain. */
extern const size_t plus_frames_stand_in_bytes;
struct _PyInterpreterFrame *
plus_frames_stand_in(void *memory, PyCodeObject *code, struct _PyInterpreterFrame *previous);

/* The source line of an offset in bytes, -1: it has none. */
int
plus_frames_line(PyCodeObject *code, int offset);

/* How often C code called Python code inside the tasklet: 0 for a function that called only Python
 * functions and C functions that call nothing back. */
int
plus_frames_nesting(const struct plus_frames *frames);

/* Whether the memory of the frames may be moved away until the tasklet goes on.  Not when there is
 * a frame object, which points to its frame, or a generator among them, which is reached from
 * elsewhere. */
bool
plus_frames_may_move(const struct plus_frames *frames);

/* The frame object of the innermost Python frame that has begun, made if there is none yet; a new
 * reference.  NULL without an exception: there is no such frame, no memory, or the frames have been
 * moved, and a frame object would point to where they were.  From then on plus_frames_may_move()
 * says no. */
PyObject *
plus_frames_object(const struct plus_frames *frames);

#endif
