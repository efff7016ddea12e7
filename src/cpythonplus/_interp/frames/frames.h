/* Reading the interpreter frames of a parked tasklet: the references that they own, their instructions, and whether
 * they may be moved.
 *
 * The chain starts at the thread state's current frame of the moment when the tasklet was parked, and goes out through
 * `previous`.  It ends at NULL or, from 3.15 on, at a thread state's base frame.
 *
 * The GIL is held, and the tasklet does not run.  No function switches tasklets, and only plus_frames_object() makes an
 * object that the garbage collector tracks.
 */
#pragma once

#include "pystate.h"

struct _PyInterpreterFrame;

struct plus_frames {
    struct _PyInterpreterFrame *top; /* NULL: no frames */
    /* The range of a cold tasklet's stack and its present place; `previous` and the like still hold the old
     * addresses. */
    struct plus_moved moved;
    /* True if the tasklet was not parked by a call that Python code made (schedule(), a channel's send() and so on),
     * but from a finaliser, or from a callback of the interpreter such as a trace function in C.  Up to 3.13 the
     * operand stack of the innermost frame may then hold freed objects. */
    bool uncalled;
    /* True in a callback of sys.monitoring, between two instructions of the innermost frame (3.12 and later). */
    bool between;
};

/* The present address of a frame of the chain. */
struct _PyInterpreterFrame *
plus_frames_located(const struct plus_frames *frames, struct _PyInterpreterFrame *frame);

/* The frames of a thread, which is the current one or waits for the GIL.  They stay valid until the caller gives the
 * GIL up or returns to Python code. */
struct plus_frames
plus_frames_of_thread(PyThreadState *tstate);

/* Visit each reference that the frames own, once, for tp_traverse: code, function, locals mapping, frame object, local
 * variables and cells, and operands.  0, or the result of `visit`.
 *
 * A reference that is not owned must not be visited: that would corrupt the heap.  An owned reference that is left out
 * looks as if it were held from outside, so that a cycle through it is not collected.  Left out are
 * - frames of generators and coroutines, which visit them.  (Up to 3.13 they visit no variables while they run.
 *   Visiting these here would ascribe them to the wrong owner: a generator can outlive the tasklet.)
 * - references that C functions of the chain hold, such as the tuple of arguments that a constructor gets.
 * - up to 3.13, operands of a frame that is inside C, unless the instruction in progress is known to be a call, or a
 *   `for` that asks its iterator.  The operands below those of the call are visited.  The call's own operands are
 *   dropped one after the other when the call is over, and code that runs meanwhile (finalisers, callbacks of weak
 *   references, generators that are closed) finds some of them freed.  The innermost frame counts as inside its call
 *   unless `uncalled` is set.  Another frame does if one of the operands is the function that runs, or if that function
 *   is the __init__, __new__, __call__ or __next__ of the callable; then only operands that the running function holds
 *   too are visited, so that no freed object is read.  A frame with a frame object does not: a signal handler gets one,
 *   and an exception or a trace function leaves one. */
int
plus_frames_visit(const struct plus_frames *frames, visitproc visit, void *arg);

/* Visit of these the operands, the function and the frame object of one frame, which is at its own address.  `callee` is
 * the next inner Python frame, NULL for the innermost; `uncalled` as in struct plus_frames, or if it is not known.
 * PLUS_FACT_OPERANDS must have been proven. */
int
plus_frames_visit_unnamed(struct _PyInterpreterFrame *frame, struct _PyInterpreterFrame *callee,
                          bool uncalled, visitproc visit, void *arg);

/* Visit of the innermost frame of another thread, which waits for the GIL, the operands that it surely has: up to 3.13,
 * where plus_frames_visit_unnamed() leaves out all of them. */
int
plus_frames_visit_waiting(struct _PyInterpreterFrame *frame, visitproc visit, void *arg);

/* Call `each` for each frame, innermost first and including generators, with its code (borrowed) and the byte offset of
 * its last instruction, until it returns non-zero.  Returns that result, or 0.  Frames that have not begun and frames
 * of the interpreter itself are left out. */
int
plus_frames_each(const struct plus_frames *frames, int (*each)(PyCodeObject *, int, void *),
                 void *arg);

/* Make zeroed memory of this size into a frame that has not begun and owns nothing, with `code` and `previous`.  For
 * code that only walks the chain. */
extern const size_t plus_frames_stand_in_bytes;
struct _PyInterpreterFrame *
plus_frames_stand_in(void *memory, PyCodeObject *code, struct _PyInterpreterFrame *previous);

/* The code that the calling thread executes, innermost but for `skipped`, as a new reference, with the byte offset of its
 * instruction; NULL if it runs no Python code.  Makes no object.  PLUS_FACT_FRAMES must have been proven. */
PyObject *
plus_frames_here(int *offset, const PyCodeObject *skipped);

/* The operand at `index` of a frame, counted from the bottom of its stack: a new reference, NULL if there is none.  The
 * caller knows from the code that the operand is there.  PLUS_FACT_FRAMES must have been proven. */
PyObject *
plus_frames_operand(PyFrameObject *frame, int index);

/* The source line of a byte offset; -1 if it has none. */
int
plus_frames_line(PyCodeObject *code, int offset);

/* The number of times that C code called Python code inside the tasklet: 0 for a function that called only Python
 * functions and C functions that call nothing back. */
int
plus_frames_nesting(const struct plus_frames *frames);

/* True if the memory of the frames may be moved until the tasklet goes on.  False if there is a frame object, which
 * points to its frame, or a generator among them, which is reached from elsewhere. */
bool
plus_frames_may_move(const struct plus_frames *frames);

/* The frame object of the innermost Python frame that has begun, made if there is none yet; a new reference.  NULL
 * without an exception if there is no such frame, no memory, or the frames have been moved (the frame object would
 * point to the old address).  Afterwards plus_frames_may_move() is false. */
PyObject *
plus_frames_object(const struct plus_frames *frames);
