#include "pyframe.h"

#include "live_frames.h"

#include "../../_base/memory/copy_memory.h"
#include "../../_base/memory/own_memory.h"

#define MOST_FRAMES 1000

typedef struct _PyInterpreterFrame Frame;

static struct {
    Frame **frames;
    size_t count, room;
} suspended; /* only in a copy of the process */

static int
visit_frame(const Frame *frame, int (*visit)(PyCodeObject *, int, PyObject *, void *), void *arg)
{
    PyCodeObject *code = plus_pyframe_code(frame);
    int stop = visit(code, -1, (PyObject *)code, arg);

    for (int i = 0; stop == 0 && i < code->co_nlocalsplus; i++) {
        PyObject *value = plus_pyframe_variable(frame, i);
        if (value != NULL) {
            stop = visit(code, i, value, arg);
        }
    }
    return stop;
}

int
plus_live_frames_visit(int (*visit)(PyCodeObject *code, int index, PyObject *value, void *arg),
                       void *arg)
{
    PyThreadState *tstate = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    for (; tstate != NULL; tstate = PyThreadState_Next(tstate)) {
        for (Frame *home = plus_pyframe_top(tstate), *frame; home != NULL; home = frame->previous) {
            frame = plus_pyframe_at(home);
            int stop = plus_pyframe_has_begun(frame) ? visit_frame(frame, visit, arg) : 0;
            if (stop != 0) {
                return stop;
            }
        }
    }
    for (size_t i = 0; i < suspended.count; i++) {
        int stop = visit_frame(suspended.frames[i], visit, arg);
        if (stop != 0) {
            return stop;
        }
    }
    return 0;
}

/* greenlet keeps the stack of a suspended greenlet whole, and from 3.12 on takes the interpreter's own frames out of the
 * chain, since they lie on a C stack that others use meanwhile.  The address is checked nevertheless. */
static bool
is_frame(const Frame *frame)
{
    Frame copy;
    PyObject code;

    return plus_read_memory((uintptr_t)frame, &copy, sizeof copy) &&
           plus_pyframe_is_python(&copy) && copy.owner != FRAME_OWNED_BY_FRAME_OBJECT &&
           plus_read_memory((uintptr_t)plus_pyframe_executable(&copy), &code, sizeof code) &&
           PyCode_Check(&code);
}

int
plus_live_frames_note(PyFrameObject *innermost)
{
    Frame *frame = plus_pyframe_of(innermost);

    for (int depth = 0; depth < MOST_FRAMES && is_frame(frame); depth++) {
        Frame **frames = plus_room_for_one(suspended.frames, suspended.count, &suspended.room, 64,
                                           sizeof *frames);
        if (frames == NULL) {
            return -ENOMEM;
        }
        suspended.frames = frames;
        if (plus_pyframe_has_begun(frame)) {
            suspended.frames[suspended.count++] = frame;
        }
        if (frame->previous == NULL) {
            break;
        }
        frame = plus_pyframe_at(frame->previous);
    }
    return 0;
}
